// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "usdt/arg.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/machine.hpp"
#include "usdt/operand.hpp"
#include "usdt/probe.hpp"

namespace usdt {
inline namespace v1 {

/// A register by one of its names, as its machine sees it. Its texts live as long as the program.
struct RegisterInfo {
  std::string_view name;   ///< "r10d"
  std::string_view canon;  ///< full register: "r10"; i386 "eax"; arm64 "x3", "v0"
  std::uint16_t bits = 0;  ///< width of the name
  std::uint8_t shift = 0;  ///< 8 for ah, bh, ch, dh
  bool floating = false;   ///< a vector or floating-point register
  bool instruction_pointer = false;
  /// i386: the full register where GCC keeps the upper half of an 8-byte value whose lower half is here; else empty.
  std::string_view pair_high;
};
/// The register that notes of `machine` call `name`, in either case; nothing: it has none of that name.
[[nodiscard]] std::optional<RegisterInfo> find_register(Machine machine, std::string_view name) noexcept;
/// The register of a Location; one that is none has no name.
[[nodiscard]] RegisterInfo register_info(Machine machine, RegisterId id) noexcept;

/// A location as the machine's assembler would write it: "rdi", "8(%rsp)", "[sp, 8]", "$5"; "slot 0"; empty:
/// unreadable.
[[nodiscard]] std::string location_text(const Location& location, Machine machine);

/// Gives the arguments of a site the names, types and meanings its provider describes, as far as they fit what the
/// stapsdt note says of sizes. Where the description is of another number of arguments, it gives none.
void describe(std::vector<Arg>& args, const SiteDescription& description);

/// Decodes the argument texts of a file's sites. Symbolic operands are resolved in the file's own tables.
class ArgDecoder {
 public:
  /// Reads symbols of `file` lazily; the file must outlive the decoder.
  explicit ArgDecoder(const ElfFile& file);
  /// Without a file: whatever needs a symbol or the file's compiler is unreadable.
  explicit ArgDecoder(Machine machine);
  ArgDecoder(ArgDecoder&&) noexcept;
  ArgDecoder& operator=(ArgDecoder&&) noexcept;
  ~ArgDecoder();

  /// Whose registers the texts name.
  [[nodiscard]] Machine machine() const noexcept;

  /// Every argument of `args_text`, in order, none lost.
  [[nodiscard]] std::vector<Arg> decode(std::string_view args_text) const;
  /// Those of a site, by its `args_text` and its description.
  [[nodiscard]] std::vector<Arg> decode(const Site& site) const;
  /// The same in two steps, for those who want to see the arguments as they are written.
  [[nodiscard]] std::vector<ParsedArg> parse(std::string_view args_text) const;
  /// Of a temporary: they would view a text that is gone.
  template <class Text>
  requires std::same_as<std::remove_const_t<Text>, std::string> std::vector<ParsedArg> parse(Text&& text)
  const = delete;
  /// The second of the two.
  [[nodiscard]] std::vector<Arg> decode(std::span<const ParsedArg> parsed) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
