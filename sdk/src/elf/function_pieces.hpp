// SPDX-License-Identifier: BSD-2-Clause
// Where compilers put parts of functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "elf/function_table.hpp"
#include "usdt/address.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/stop.hpp"

namespace usdt::elf {

/// Code of a function: itself, or what the compiler put elsewhere.
struct CodePart {
  VirtAddr address;
  std::uint64_t size = 0;
  /// It may be another function's of the same name: it is this one's if one jumps to the other.
  bool maybe = false;

  [[nodiscard]] bool has(VirtAddr at) const noexcept { return at.value - address.value < size; }
};

class FramePieces;

/// The parts of all functions of a file by the names of their symbols, whoever asked for which of them: "work.cold" and
/// "work.__part.1" are parts of "work".
class FunctionPieces {
 public:
  explicit FunctionPieces(const ElfFile& file, const StopToken& stop = {});
  ~FunctionPieces();

  /// Returns the parts of the function that begins at `entry`.
  [[nodiscard]] std::vector<CodePart> of(VirtAddr entry) const;
  /// Whether a function begins at `entry`, as far as symbols say: none that begins or goes on there is of another one,
  /// or of a part of one.
  [[nodiscard]] bool may_begin_at(VirtAddr entry) const;
  /// The copy that the compiler made of a function, or of a part of one (is_clone()), and that begins at `entry`.
  [[nodiscard]] std::optional<CodePart> clone_at(VirtAddr entry) const;
  /// The part of a function without a symbol that has `address`, to which some function jumps; nothing: a symbol is
  /// there, or a function begins there, or that is not known.
  [[nodiscard]] std::optional<CodePart> unnamed_at(VirtAddr address) const;
  /// The function that has `address`, by symbols; nothing: none has, or its size is not known.
  [[nodiscard]] std::optional<CodePart> function_at(VirtAddr address) const;
  /// Whether some function called `symbol` begins at `address`.
  [[nodiscard]] bool is_called(VirtAddr address, std::string_view symbol) const;
  /// Whether the unwinder of an exception may go on within the function, or the piece of one, that has `address`: it
  /// has handlers. Where that is not told, true.
  [[nodiscard]] bool may_land_in(VirtAddr address) const;

 private:
  using Named = std::pair<std::string_view, const FunctionEntry*>;

  [[nodiscard]] const FramePieces& frames() const;
  /// Whether the functions called `symbol` are one.
  [[nodiscard]] bool is_one(std::string_view symbol) const;

  std::shared_ptr<const OpenedFile> file_;
  FunctionTable table_;
  mutable std::unique_ptr<const FramePieces> frames_;  ///< null: nobody asked yet
  std::vector<const FunctionEntry*> by_address_;
  std::vector<const FunctionEntry*> by_name_;
  std::vector<Named> pieces_;  ///< by the function's symbol
};

}  // namespace usdt::elf
