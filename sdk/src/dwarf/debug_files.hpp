// SPDX-License-Identifier: BSD-2-Clause
// The files that a program's debug information is in, open together. Private to dwarf/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arch/arch.hpp"
#include "dwarf/dwarf_file.hpp"
#include "dwarf/split_units.hpp"
#include "elf/elf_impl.hpp"
#include "usdt/address.hpp"
#include "usdt/elf_file.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt::dwarf {

/// Addresses that are code of the file.
class CodeRanges {
 public:
  explicit CodeRanges(const elf::Image& image);
  [[nodiscard]] bool contains(VirtAddr address) const noexcept;

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;  ///< start, last; sorted
};

/// A file, its separate debug file, and what these refer to.
struct DebugFiles {
  /// Errors: those of DebugInfo::open().
  [[nodiscard]] static Result<DebugFiles> open(const ElfFile& file, const StopToken& stop);

  std::shared_ptr<const elf::OpenedFile> opened;
  std::optional<elf::DebugFile> debug_file;
  const arch::Arch& arch;
  CodeRanges code;
  DwarfFile shared = {};  ///< what dwz shares; no handles where there is none. Closed after `main`, which refers to it
  DwarfFile main = {};
  SplitUnits split = {};        ///< what skeletons in `main` stand for
  DebugSections sections = {};  ///< of `main`

  /// Bytes of entries that units of `main` lead to, but for those of .dwo files.
  [[nodiscard]] std::uint64_t bytes_of_dies() const;
  /// Whether libdw has `dwarf` of a .dwo file; else it is of `main` or of what dwz shares.
  [[nodiscard]] bool is_split(const Dwarf* dwarf) const noexcept {
    return dwarf != main.dwarf.get() && dwarf != shared.dwarf.get();
  }
  /// The file that `main` was read from: the program's own, or the separate one.
  [[nodiscard]] const elf::File& main_file() const noexcept { return debug_file ? debug_file->file : opened->file; }
};

}  // namespace usdt::dwarf
