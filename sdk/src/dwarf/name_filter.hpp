// SPDX-License-Identifier: BSD-2-Clause
// Which units of a debug file can have code of a function whose name is known: those whose bytes lead to that name.
// The names are searched for in the sections of strings, and where they are is searched for in the units, by
// comparing bytes and without reading entries. Private to dwarf/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dwarf/functions.hpp"
#include "dwarf/unit_reader.hpp"
#include "usdt/stop.hpp"

namespace usdt::dwarf {

/// The forms of the names in a unit's entries, from its abbreviations alone.
struct NameForms {
  bool elsewhere = false;  ///< some may be in other units or files, or have forms that are not understood
  bool in_place = false;   ///< some are in .debug_info itself
  bool indexed = false;    ///< some are found by way of .debug_str_offsets
  std::uint64_t size = 0;  ///< bytes of abbreviations that were read for it
};
/// Reads at most `most` bytes of the unit's abbreviations.
[[nodiscard]] NameForms name_forms(const DebugSections& sections, const UnitHead& unit, std::uint64_t most);

class NameFilter {
 public:
  /// Nothing: too many names may be meant, or reading the units is as fast; or `stop` was requested. `let_go` is called
  /// now and then: what was read of the sections is not needed soon.
  [[nodiscard]] static std::optional<NameFilter> make(const DebugSections& sections, const NameHint& hint,
                                                      const StopToken& stop, const std::function<void()>& let_go);

  /// Whether the unit may have one of the names, if its abbreviations say `forms`. `str_offsets_base`: what its own
  /// entry says; 0: nothing.
  [[nodiscard]] bool may_be_in(const DebugSections& sections, const UnitHead& unit, const NameForms& forms,
                               std::uint64_t str_offsets_base) const;

 private:
  NameFilter() = default;
  [[nodiscard]] bool is_indexed(const DebugSections& sections, const UnitHead& unit, std::uint64_t base) const;

  std::vector<std::string> words_;
  std::vector<std::string> offsets_;    ///< of the names in the sections of strings, four bytes as units have them
  std::vector<std::uint64_t> indexed_;  ///< where in .debug_str_offsets those are, sorted
};

}  // namespace usdt::dwarf
