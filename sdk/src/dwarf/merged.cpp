// SPDX-License-Identifier: BSD-2-Clause
// Calls that LLVM made one of several. Where branches do the same, it does that once, behind or before them, and such
// an instruction has line 0 and is of no inlined copy any more: of a copy nothing may be left in debug information.
// What shows is a call at line 0, in a function itself, of what the copies of the same unit call.
#include <algorithm>
#include <optional>
#include <set>

#include "dwarf/calls.hpp"
#include "dwarf/compiler.hpp"
#include "dwarf/debug_state.hpp"
#include "dwarf/die.hpp"

namespace usdt::dwarf {
namespace {

/// The call that `die` tells of; nothing: it does not say where, or of what.
std::optional<MergedCall> call_of(Dwarf_Die die, Dwarf_Die unit) {
  const bool old = dwarf_tag(&die) == DW_TAG_GNU_call_site;
  auto at = own_attribute(die, old ? DW_AT_low_pc : DW_AT_call_return_pc);
  const auto callee = reference(own_attribute(die, old ? DW_AT_abstract_origin : DW_AT_call_origin));
  Dwarf_Addr behind = 0;
  if (!at || !callee || dwarf_formaddr(&*at, &behind) != 0 || behind == 0) return std::nullopt;
  const VirtAddr pc(behind - 1);
  return MergedCall{pc, origin_of(*callee).addr, line_at(unit, pc).line == 0};
}

/// The calls in functions of `unit` that lead to known functions.
const std::vector<MergedCall>& calls_of(DebugState& state, Dwarf_Die unit) {
  return state.calls.of(unit, [&] {
    std::vector<MergedCall> calls;
    TreeWalk tree(state.stop, &state.shared_reads);
    for_each_call(unit, tree, [&](Dwarf_Die die) {
      if (const auto call = call_of(die, unit)) calls.push_back(*call);
    });
    return calls;
  });
}

}  // namespace

bool may_be_merged(const DebugInfo& info, const FunctionInfo& function) {
  DebugState& state = *info.state();
  const std::scoped_lock lock(state.mutex);
  std::map<const void*, std::set<const void*>> called;  // by the unit: what copies in it call
  std::map<const void*, Dwarf_Die> units;
  // Since LLVM 20 what two calls have in common is a copy of its own, whose call has no column.
  bool with_column = false;
  bool without_column = false;
  for (const Instance& each : function.instances) {
    const auto known = each.inlined ? state.dies.find(each.die) : std::nullopt;
    Dwarf_Die unit;
    Dwarf_Die die = known ? known->die : Dwarf_Die{};
    if (!known || !is_clang(known->function) || dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) continue;
    units.emplace(unit.addr, unit);
    (own_number(known->die, DW_AT_call_column).value_or(0) != 0 ? with_column : without_column) = true;
    for (const MergedCall& call : calls_of(state, unit))
      if (!call.merged && has_pc(known->die, call.pc, state.shared_reads)) called[unit.addr].insert(call.callee);
  }
  if (with_column && without_column) return true;
  return std::ranges::any_of(called, [&](const auto& of_unit) {
    return std::ranges::any_of(calls_of(state, units.at(of_unit.first)), [&](const MergedCall& call) {
      return call.merged && of_unit.second.contains(call.callee);
    });
  });
}

}  // namespace usdt::dwarf
