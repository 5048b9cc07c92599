// SPDX-License-Identifier: BSD-2-Clause
// Copies of functions whose parameters compilers changed. Private to dwarf/.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "elf/elf_impl.hpp"
#include "usdt/address.hpp"

namespace usdt::dwarf {

/// What the name of a function's symbol tells of how it is called.
enum class CodeName : std::uint8_t {
  unknown,       ///< no symbol is there
  as_written,    ///< as its source says
  other_args,    ///< parameters were replaced by what they always are (NAME.constprop.0)
  other_result,  ///< and its result may have been removed, or it is a part of the function (NAME.isra.0, NAME.part.0)
};

class CodeNames {
 public:
  /// From all symbol tables of both files.
  CodeNames(const elf::OpenedFile& opened, const std::optional<elf::DebugFile>& debug_file);
  [[nodiscard]] CodeName at(VirtAddr entry) const;
  /// Some symbol makes the function known to other files; without one, whatever its source says, whoever saw the whole
  /// program (link-time optimisation) may have changed how it is called.
  [[nodiscard]] bool is_external(VirtAddr entry) const;
  /// The dynamic linker may take another file's in its place.
  [[nodiscard]] bool is_replaceable(VirtAddr entry) const;

 private:
  struct Known {
    CodeName name = CodeName::unknown;
    bool external = false;
    bool replaceable = false;
  };
  void add(const elf::File& file, const elf::Image& image);
  std::unordered_map<std::uint64_t, Known> names_;
};

}  // namespace usdt::dwarf
