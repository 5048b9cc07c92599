// SPDX-License-Identifier: BSD-2-Clause
// The units of debug information: each of them, and which has an address. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dwarf/budget.hpp"
#include "dwarf/debug_files.hpp"
#include "dwarf/function_index.hpp"
#include "dwarf/split_units.hpp"
#include "usdt/address.hpp"

namespace usdt::dwarf {

/// Each unit with code: of a skeleton, what it stands for. Until `visit(unit)` returns false.
void for_each_unit(Dwarf* dwarf, const SplitUnits& split, const std::function<bool(Dwarf_Die)>& visit);
/// The same of some units.
void for_each_unit(Dwarf* dwarf, const SplitUnits& split, const UnitSet& units,
                   const std::function<bool(Dwarf_Die)>& visit);
/// The same with the units that have only types, of split ones too.
void for_each_unit_and_type(Dwarf* dwarf, const SplitUnits& split, const std::function<bool(Dwarf_Die)>& visit);

/// Remembers something of each unit that was asked for.
template <class T>
class ByUnit {
 public:
  /// Returns what is known of `unit`: when it is asked for the first time, what `read()` returns.
  template <class Read>
  const T& of(Dwarf_Die unit, Read&& read) {
    const auto known = units_.find(unit.addr);
    return known != units_.end() ? known->second : units_.emplace(unit.addr, read()).first->second;
  }

 private:
  std::unordered_map<const void*, T> units_;
};

/// Code of `die`, which is a unit or a function of one.
struct DieRange {
  std::uint64_t start;
  std::uint64_t end;
  Dwarf_Die die;
};
/// Puts the ranges of `die` behind `all`, as long as the budget is not spent.
void add_ranges(Dwarf_Die die, Budget& budget, std::vector<DieRange>& all);
/// The one that has `pc`; they are sorted by start.
[[nodiscard]] std::optional<Dwarf_Die> find_range(const std::vector<DieRange>& all, VirtAddr pc);

/// Finds units by addresses, and remembers where the code of each is.
class UnitsByAddress {
 public:
  /// `files` and `reads`, which lists of ranges are counted in, outlive this.
  UnitsByAddress(const DebugFiles& files, Budget& reads) : files_(files), reads_(reads) {}

  /// The first unit of `main` that .debug_aranges gives the code at `pc`, by where its head is.
  [[nodiscard]] std::optional<std::uint64_t> listed_at(VirtAddr pc);
  /// The unit whose code has `pc`.
  [[nodiscard]] std::optional<Dwarf_Die> unit_at(VirtAddr pc);

 private:
  static constexpr unsigned most_searches = 16;

  const DebugFiles& files_;
  Budget& reads_;
  unsigned searches_ = 0;  ///< how often .debug_aranges was gone through, before it was sorted
  std::optional<std::vector<UnitRange>> sorted_;
  std::optional<std::vector<DieRange>> unlisted_;  ///< of all units, where .debug_aranges does not list them
};

}  // namespace usdt::dwarf
