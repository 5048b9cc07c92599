// SPDX-License-Identifier: BSD-2-Clause
// Calls that LLVM made one of several. Where branches do the same, it does that once, behind or before them, and such
// an instruction has line 0 and is of no inlined copy any more: of a copy nothing may be left in debug information.
// What shows is a call at line 0, in a function itself, of what the copies of the same unit call.
#include <algorithm>
#include <set>

#include "dwarf/compiler.hpp"
#include "dwarf/die.hpp"
#include "dwarf/impl.hpp"

namespace usdt::dwarf {
namespace {

/// Goes through the calls of a unit that debug information tells of.
class CallsOfUnit {
 public:
  CallsOfUnit(Dwarf_Die unit, const StopToken& stop, Budget& budget, std::vector<MergedCall>& found)
      : unit_(unit), tree_(stop, &budget), found_(found) {}

  void walk(Dwarf_Die parent, unsigned depth = 0) {
    if (depth == deepest_tree) return;
    tree_.children(parent, [&](Dwarf_Die child) {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_call_site || tag == DW_TAG_GNU_call_site) take(child);
      if (tag == DW_TAG_namespace || tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block) walk(child, depth + 1);
      return true;
    });
  }

 private:
  void take(Dwarf_Die die) {
    const bool old = dwarf_tag(&die) == DW_TAG_GNU_call_site;
    auto at = own_attribute(die, old ? DW_AT_low_pc : DW_AT_call_return_pc);
    const auto callee = reference(own_attribute(die, old ? DW_AT_abstract_origin : DW_AT_call_origin));
    Dwarf_Addr behind = 0;
    if (!at || !callee || dwarf_formaddr(&*at, &behind) != 0 || behind == 0) return;
    const VirtAddr pc(behind - 1);
    found_.push_back({pc, origin_of(*callee).addr, line_at(unit_, pc).line == 0});
  }

  Dwarf_Die unit_;
  TreeWalk tree_;
  std::vector<MergedCall>& found_;
};

}  // namespace

const PassedNumbers& DebugInfo::Impl::numbers_passed_in(Dwarf_Die unit) const {
  const auto [known, is_new] = numbers_passed_in_units.try_emplace(unit.addr);
  if (is_new) known->second = passed_numbers(unit, stop, shared_reads);
  return known->second;
}

const std::vector<MergedCall>& DebugInfo::Impl::calls_of(Dwarf_Die unit) const {
  const auto [known, is_new] = calls_of_units.try_emplace(unit.addr);
  if (is_new) CallsOfUnit(unit, stop, shared_reads, known->second).walk(unit);
  return known->second;
}

bool DebugInfo::may_be_merged(const FunctionInfo& function) const {
  const std::scoped_lock lock(impl_->mutex);
  std::map<const void*, std::set<const void*>> called;  // by the unit: what copies in it call
  std::map<const void*, Dwarf_Die> units;
  // Since LLVM 20 what two calls have in common is a copy of its own, whose call has no column.
  bool with_column = false;
  bool without_column = false;
  for (const Instance& each : function.instances) {
    const auto known = each.inlined ? impl_->known(each.die) : std::nullopt;
    Dwarf_Die unit;
    Dwarf_Die die = known ? known->die : Dwarf_Die{};
    if (!known || !is_clang(known->function) || dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) continue;
    units.emplace(unit.addr, unit);
    (own_number(known->die, DW_AT_call_column).value_or(0) != 0 ? with_column : without_column) = true;
    for (const MergedCall& call : impl_->calls_of(unit))
      if (!call.merged && has_pc(known->die, call.pc, impl_->shared_reads)) called[unit.addr].insert(call.callee);
  }
  if (with_column && without_column) return true;
  return std::ranges::any_of(called, [&](const auto& of_unit) {
    return std::ranges::any_of(impl_->calls_of(units.at(of_unit.first)), [&](const MergedCall& call) {
      return call.merged && of_unit.second.contains(call.callee);
    });
  });
}

}  // namespace usdt::dwarf
