// SPDX-License-Identifier: BSD-2-Clause
// A package of split debug information (FILE.dwp), which has in one file what compilers put into a .dwo file for each
// unit. libdw reads none before 0.192, and later ones only for files that it has opened itself by a name. Private to
// dwarf/.
//
// Source: DWARF 5, 7.3.5; for DWARF 4 https://gcc.gnu.org/wiki/DebugFissionDWP (version 2).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "dwarf/budget.hpp"
#include "dwarf/unit_reader.hpp"
#include "usdt/result.hpp"

namespace usdt::dwarf {

/// The kinds of sections that units of packages have a part of; DWARF 4 has types and loc, DWARF 5 loclists and
/// rnglists instead. Macros are left out.
enum class DwoSection : std::uint8_t { info, types, abbrev, line, loc, loclists, rnglists, str_offsets, str };
constexpr std::size_t kDwoSections = 9;
[[nodiscard]] std::string_view name_of(DwoSection section) noexcept;

/// The sections of a package, or of one unit's .dwo file, by DwoSection.
template <class Bytes>
struct BySection {
  std::array<Bytes, kDwoSections> all;
  [[nodiscard]] Bytes& operator[](DwoSection section) noexcept { return all[static_cast<std::size_t>(section)]; }
  [[nodiscard]] const Bytes& operator[](DwoSection section) const noexcept {
    return all[static_cast<std::size_t>(section)];
  }
};
using DwoBytes = BySection<std::vector<std::uint8_t>>;

class DwarfPackage {
 public:
  struct Sections {
    BySection<SectionBytes> contents;
    SectionBytes units;  ///< .debug_cu_index
    SectionBytes types;  ///< .debug_tu_index
  };

  /// `sections` are there as long as this is. Units that the indexes do not place within them are left out. Errors:
  /// malformed, not_supported (a version of an index).
  [[nodiscard]] static Result<DwarfPackage> read(const Sections& sections);

  /// Whether it has the unit that a skeleton's DWO id names.
  [[nodiscard]] bool has(std::uint64_t id) const noexcept { return find(units_, id) != nullptr; }
  /// Makes the contents of that unit's .dwo file: its own parts of the sections, the strings that these name, and the
  /// type units that it refers to. Nothing: there is none, it is not understood, or `budget`, which each byte is taken
  /// from, is spent.
  [[nodiscard]] std::optional<DwoBytes> dwo_of(std::uint64_t id, Budget& budget) const;

 private:
  struct Part {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
  };
  /// A row of an index.
  struct Row {
    std::uint64_t id = 0;
    BySection<Part> parts;
  };
  class Composer;

  [[nodiscard]] static Result<std::vector<Row>> read_index(SectionBytes index, const Sections& sections);
  [[nodiscard]] static const Row* find(const std::vector<Row>& rows, std::uint64_t id) noexcept;
  [[nodiscard]] SectionBytes part(const Row& row, DwoSection section) const noexcept;

  Sections sections_;
  std::vector<Row> units_;  ///< by id
  std::vector<Row> types_;  ///< by id
};

/// These sections as an ELF file, with zeros behind.
[[nodiscard]] std::vector<std::uint8_t> elf_file_of(const DwoBytes& sections, bool is64, std::uint16_t machine);

}  // namespace usdt::dwarf
