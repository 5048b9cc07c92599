// SPDX-License-Identifier: BSD-2-Clause
// One file, and what its code says of all of its functions. Private to find/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "elf/code_reader.hpp"
#include "elf/elf_impl.hpp"
#include "elf/function_pieces.hpp"
#include "elf/go_program.hpp"
#include "elf/return_address.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/stop.hpp"

namespace usdt::find {

/// Reads each thing when it is first asked for.
class FileCode {
 public:
  /// `elf` and `stop` outlive this.
  FileCode(const ElfFile& elf, const StopToken& stop);
  FileCode(const FileCode&) = delete;
  FileCode& operator=(const FileCode&) = delete;

  [[nodiscard]] const ElfFile& elf() const noexcept { return elf_; }
  [[nodiscard]] Machine machine() const { return elf_.machine(); }
  [[nodiscard]] const elf::Image& image() const noexcept { return elf::Inside::of(elf_)->image; }
  /// Nothing: the file is no Go program.
  [[nodiscard]] const std::optional<elf::GoProgram>& go() const noexcept { return go_; }
  /// The compiler that made a Go program.
  [[nodiscard]] std::string go_version() const { return go_->version.empty() ? "a Go before 1.18" : go_->version; }

  [[nodiscard]] elf::Code at(VirtAddr pc) { return reader_.at(pc); }
  const elf::FunctionPieces& pieces();
  elf::ReturnAddresses& return_addresses();
  bool may_be_left_by_exceptions();
  bool may_switch_stacks();
  /// A program of C, not a library, that has no use for its callers: nothing throws through what it calls, either.
  bool is_plain_program();

 private:
  const ElfFile& elf_;
  const StopToken& stop_;
  elf::CodeReader reader_;
  std::optional<elf::GoProgram> go_;
  std::optional<elf::FunctionPieces> pieces_;
  std::optional<elf::ReturnAddresses> return_addresses_;
  std::optional<bool> plain_;
  std::optional<bool> unwinds_;
  std::optional<bool> switches_;
};

/// Puts the point on the instruction at `pc`.
void place(FileCode& file, FunctionPoint& point, VirtAddr pc);
/// Puts the point on a function's first instruction, behind one that only allows indirect jumps.
void place_at_start(FileCode& file, FunctionPoint& point, VirtAddr address);
/// Returns whether what the point is placed on is an instruction that runs once for each of its rounds.
[[nodiscard]] bool repeats(const FileCode& file, const FunctionPoint& point);
/// Returns the bytes of the room for patches that ends at `pc`; 0: there is none.
[[nodiscard]] std::uint8_t patch_room_before(FileCode& file, VirtAddr pc);

}  // namespace usdt::find
