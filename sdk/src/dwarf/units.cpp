// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/units.hpp"

#include <algorithm>
#include <iterator>

#include "dwarf/die.hpp"

namespace usdt::dwarf {
namespace {

/// Each unit as it is in its file, until `visit(unit, whether it has a type only)` returns false.
template <class Visit>
void for_each_unit_in(Dwarf* dwarf, Visit&& visit) {
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  std::uint8_t kind = 0;
  while (dwarf_get_units(dwarf, unit, &unit, nullptr, &kind, &die, nullptr) == 0)
    // libdw returns a DIE of no unit for a unit without any entry (tests/fuzz).
    if (die.cu != nullptr && !visit(die, kind == DW_UT_type || kind == DW_UT_split_type)) return;
}

}  // namespace

void for_each_unit(Dwarf* dwarf, const SplitUnits& split, const std::function<bool(Dwarf_Die)>& visit) {
  for_each_unit_in(dwarf, [&](Dwarf_Die unit, bool is_type) { return is_type || visit(split.whole(unit)); });
}

void for_each_unit(Dwarf* dwarf, const SplitUnits& split, const UnitSet& units,
                   const std::function<bool(Dwarf_Die)>& visit) {
  for_each_unit_in(dwarf, [&](Dwarf_Die unit, bool is_type) {
    return is_type || !units.contains(dwarf_dieoffset(&unit) - dwarf_cuoffset(&unit)) || visit(split.whole(unit));
  });
}

void for_each_unit_and_type(Dwarf* dwarf, const SplitUnits& split, const std::function<bool(Dwarf_Die)>& visit) {
  for_each_unit_in(dwarf, [&](Dwarf_Die unit, bool) {
    const Dwarf_Die whole = split.whole(unit);
    if (whole.addr == unit.addr) return visit(unit);
    bool more = true;
    for_each_unit_in(dwarf_cu_getdwarf(whole.cu), [&](Dwarf_Die each, bool) { return more = visit(each); });
    return more;
  });
}

void add_ranges(Dwarf_Die die, Budget& budget, std::vector<DieRange>& all) {
  for_each_range(die, budget, [&](Dwarf_Addr begin, Dwarf_Addr end) {
    if (begin < end) all.push_back({begin, end, die});
    return true;
  });
}

std::optional<Dwarf_Die> find_range(const std::vector<DieRange>& all, VirtAddr pc) {
  const auto after = std::ranges::upper_bound(all, pc.value, {}, &DieRange::start);
  if (after == all.begin()) return std::nullopt;
  const auto first = std::ranges::lower_bound(all, std::prev(after)->start, {}, &DieRange::start);
  const auto found = std::find_if(first, after, [pc](const DieRange& range) { return pc.value < range.end; });
  return found == after ? std::nullopt : std::optional(found->die);
}

std::optional<std::uint64_t> UnitsByAddress::listed_at(VirtAddr pc) {
  const SectionBytes aranges = files_.sections.aranges;
  if (!sorted_ && searches_++ < most_searches) return unit_by_aranges(aranges, pc.value);
  if (!sorted_) sorted_ = unit_ranges(aranges);
  return find_unit(*sorted_, pc.value);
}

std::optional<Dwarf_Die> UnitsByAddress::unit_at(VirtAddr pc) {
  Dwarf_Die unit;
  const auto listed = listed_at(pc);
  const auto head = listed ? unit_head(files_.sections.info, *listed) : std::nullopt;
  if (head && dwarf_offdie(files_.main.dwarf.get(), head->first_entry, &unit) != nullptr)
    return files_.split.whole(unit);
  // Clang writes no .debug_aranges: the units themselves are asked.
  if (!unlisted_) {
    unlisted_.emplace();
    for_each_unit(files_.main.dwarf.get(), files_.split, [this](Dwarf_Die each) {
      add_ranges(each, reads_, *unlisted_);
      return true;
    });
    std::ranges::stable_sort(*unlisted_, {}, &DieRange::start);
  }
  return find_range(*unlisted_, pc);
}

}  // namespace usdt::dwarf
