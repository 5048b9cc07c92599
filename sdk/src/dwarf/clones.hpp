// SPDX-License-Identifier: BSD-2-Clause
// Copies of functions whose parameters compilers changed. Private to dwarf/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dwarf/function_info.hpp"
#include "elf/elf_impl.hpp"
#include "elf/symbol_tables.hpp"
#include "usdt/address.hpp"

namespace usdt::dwarf {

/// The way a function is called, as far as the name of its symbol shows.
enum class CodeName : std::uint8_t {
  unknown,       ///< no symbol is there
  as_written,    ///< as its source says
  other_args,    ///< parameters were replaced by what they always are (NAME.constprop.0)
  other_result,  ///< and its result may have been removed, or it is a part of the function (NAME.isra.0, NAME.part.0)
};

/// The symbol tables of a file and of its debug file. The first functions are looked up without keeping any of the
/// tables, whose names may be a large part of a file; for more functions, all of it is kept.
class CodeNames {
 public:
  /// The files are there as long as this is.
  CodeNames(const elf::OpenedFile& opened, const std::optional<elf::DebugFile>& debug_file);
  [[nodiscard]] CodeName at(VirtAddr entry) const { return known(entry).name; }
  /// Some symbol makes the function known to other files; without one, whatever its source says, whoever saw the whole
  /// program (link-time optimisation) may have changed how it is called.
  [[nodiscard]] bool is_external(VirtAddr entry) const { return known(entry).external; }
  /// Its linkage was not the compiler's to change: it is known to other files, or was to other objects (a hidden
  /// symbol, which linkers make a local one).
  [[nodiscard]] bool is_linked(VirtAddr entry) const { return known(entry).linked; }
  /// How much of a function the symbols there name.
  [[nodiscard]] FunctionPart part_at(VirtAddr entry) const {
    const Known there = known(entry);
    if (there.whole) return FunctionPart::whole;
    return there.coroutine ? FunctionPart::coroutine : there.split ? FunctionPart::split : FunctionPart::whole;
  }
  /// The dynamic linker may take another file's in its place.
  [[nodiscard]] bool is_replaceable(VirtAddr entry) const { return known(entry).replaceable; }
  /// Some symbol is that of a function that computes with numbers of 128 bits in software (__addtf3).
  [[nodiscard]] bool has_quads() const;
  /// The symbol of a function is there, and not of a part that the compiler put elsewhere.
  [[nodiscard]] bool begins_at(VirtAddr address) const;

 private:
  struct Known {
    CodeName name = CodeName::unknown;
    bool external = false;
    bool linked = false;
    bool replaceable = false;
    bool split = false;      ///< some symbol names what was split off
    bool coroutine = false;  ///< some symbol names what goes on with a coroutine
    bool whole = false;      ///< some symbol names neither
    void add(std::string_view symbol_name, const elf::Symbol& symbol, std::uint32_t table_type);
  };
  [[nodiscard]] Known known(VirtAddr entry) const;
  [[nodiscard]] Known search(VirtAddr entry) const;
  void add_all(const elf::File& file, const elf::Image& image) const;
  void add_beginnings(const elf::File& file, const elf::Image& image) const;

  struct Tables {
    const elf::File* file;
    const elf::Image* image;
  };
  std::vector<Tables> files_;
  mutable std::unordered_map<std::uint64_t, Known> names_;  ///< of those that were asked for; or of all
  mutable bool all_ = false;
  mutable std::optional<std::vector<std::uint64_t>> beginnings_;  ///< of functions, sorted
  mutable std::optional<bool> has_quads_;
};

}  // namespace usdt::dwarf
