// SPDX-License-Identifier: BSD-2-Clause
// A file that processes run code of, and what it says of that code. Private to stack/.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dwarf/debug_info.hpp"
#include "elf/demangle.hpp"
#include "elf/function_table.hpp"
#include "locate/call_frames.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/stack.hpp"
#include "usdt/symbolizer.hpp"

namespace usdt::stack {

/// Virtual machines whose compilers make code while programs run.
enum class Runtime : std::uint8_t { none, v8, hotspot };

/// One file. Its parts are read when they are first needed, from the inode that was opened: it may be deleted
/// meanwhile.
class Module {
 public:
  /// `path` is what people are shown as its name.
  Module(ElfFile file, std::string path, const SymbolizerOptions& options);

  [[nodiscard]] const ElfFile& file() const noexcept { return file_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] Machine machine() const noexcept { return file_.machine(); }
  /// The address, as linked, of the code at `offset`; nothing: no executable segment has it.
  [[nodiscard]] std::optional<VirtAddr> address_of(FileOffset offset) const noexcept;

  /// Whether a call may return to `address`: false only where what is in front of it is known to be none.
  [[nodiscard]] bool may_return_to(VirtAddr address) const;

  /// Whether the code at `address` does nothing but return: a stub's, whose frame is the return address alone. False
  /// where that is not known.
  [[nodiscard]] bool returns_at_once(VirtAddr address) const;

  /// Whether a signal handler returns to the code at `address`, so that the frame there is one that a signal made.
  [[nodiscard]] bool returns_from_signal(VirtAddr address);

  /// Returns the functions at `lookup`, inlined ones first, at least one frame. Members that depend on the process are
  /// not set. Valid until the next call.
  [[nodiscard]] const std::vector<Frame>& functions_at(VirtAddr lookup);
  /// Null: there are none that can be read.
  [[nodiscard]] locate::CallFrames* call_frames();
  /// Returns the runtime that the file has.
  [[nodiscard]] Runtime runtime();

 private:
  [[nodiscard]] std::vector<Frame> read(VirtAddr lookup);
  [[nodiscard]] const elf::FunctionEntry* symbol_at(VirtAddr lookup);
  [[nodiscard]] std::uint64_t end_of_code(std::uint64_t start, std::uint64_t next);
  [[nodiscard]] std::string demangled(std::string_view symbol);
  [[nodiscard]] const dwarf::DebugInfo* debug_info();
  void read_symbols();

  /// Whether it has been written to; unlike ElfFile::unchanged(), a file that was deleted has not.
  [[nodiscard]] bool is_as_opened() const noexcept;

  ElfFile file_;
  struct stat opened_ {};
  std::string path_;
  const SymbolizerOptions& options_;
  std::string build_id_;
  std::unique_ptr<elf::FunctionTable> symbols_;
  std::unordered_map<std::uint64_t, bool> signal_returns_;
  std::unordered_map<std::uint64_t, std::uint64_t> ends_;  ///< of functions whose symbols have no size, by their start
  elf::Demangler demangler_;
  bool debug_asked_ = false;
  std::optional<dwarf::DebugInfo> debug_;
  std::optional<Runtime> runtime_;
  bool frames_asked_ = false;
  std::optional<locate::CallFrames> call_frames_;
  std::unordered_map<std::uint64_t, std::vector<Frame>> known_;
};

}  // namespace usdt::stack
