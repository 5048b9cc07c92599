// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/running.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "dwarf/debug_state.hpp"
#include "dwarf/die.hpp"

namespace usdt::dwarf {
namespace {

/// Budget for the ranges of a function's inlined calls, to find those of one address.
constexpr std::uint64_t kRangesOfOneAddress = std::uint64_t{4} << 20;

/// Adds the code of a unit's functions, those in namespaces, classes and (nested ones) in functions included.
void add_functions(Dwarf_Die parent, unsigned depth, TreeWalk& tree, Budget& budget, std::vector<DieRange>& all) {
  if (depth == kDeepestTree) return;
  tree.children(parent, [&](Dwarf_Die child) {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram:
        add_ranges(child, budget, all);
        [[fallthrough]];
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_structure_type:
      case DW_TAG_class_type:
      case DW_TAG_union_type:
        add_functions(child, depth + 1, tree, budget, all);
        break;
      default:
        break;
    }
    return true;
  });
}

/// The calls inlined at `pc` below `parent`, outermost first.
bool find_inlined(Dwarf_Die parent, VirtAddr pc, unsigned depth, TreeWalk& tree, Budget& budget,
                  std::vector<Dwarf_Die>& chain) {
  bool found = false;
  if (depth == kDeepestTree) return found;
  tree.children(parent, [&](Dwarf_Die child) {
    switch (dwarf_tag(&child)) {
      case DW_TAG_inlined_subroutine:
        if (!has_pc(child, pc, budget)) return true;
        chain.push_back(child);
        static_cast<void>(find_inlined(child, pc, depth + 1, tree, budget, chain));
        found = true;
        break;
      case DW_TAG_lexical_block:
      case DW_TAG_try_block:
      case DW_TAG_catch_block:
        // A block without addresses of its own is as large as what it is in.
        if (has_pc(child, pc, budget) || !entry_of_block(child))
          found = find_inlined(child, pc, depth + 1, tree, budget, chain);
        break;
      default:
        break;
    }
    return !found;
  });
  return found;
}

/// The functions around `pc` in its unit, outermost first.
std::vector<Dwarf_Die> chain_at(DebugState& state, Dwarf_Die unit, VirtAddr pc) {
  const auto& functions = state.function_ranges.of(unit, [&] {
    std::vector<DieRange> ranges;
    TreeWalk tree(state.stop);
    add_functions(unit, 0, tree, state.shared_reads, ranges);
    std::ranges::sort(ranges, {}, &DieRange::start);
    return ranges;
  });
  std::vector<Dwarf_Die> chain;
  if (const auto function = find_range(functions, pc)) {
    chain.push_back(*function);
    TreeWalk tree;
    Budget budget(kRangesOfOneAddress, 0);
    static_cast<void>(find_inlined(*function, pc, 0, tree, budget, chain));
    if (budget.spent()) chain.clear();  // an inlined one may be missing
  }
  return chain;
}

}  // namespace

std::vector<RunningFunction> functions_at(const DebugInfo& info, VirtAddr pc) {
  DebugState& state = *info.state();
  const std::scoped_lock lock(state.mutex);
  const auto unit = state.files.code.contains(pc) ? state.units.unit_at(pc) : std::nullopt;
  if (!unit) return {};
  SourceLine line = line_at(*unit, pc);
  const std::vector<Dwarf_Die> chain = chain_at(state, *unit, pc);
  std::vector<RunningFunction> found;
  for (std::size_t i = chain.size(); i-- > 0;) {
    FunctionInfo function = describe(state, chain[i]);
    RunningFunction& running = found.emplace_back();
    running.name = std::move(function.qualified);
    running.linkage_name = std::move(function.linkage_name);
    running.entry = state.entry_of(chain.front());
    running.line = std::move(line);
    running.inlined = i > 0;
    line = i > 0 ? called_at(chain[i]) : SourceLine{};
  }
  if (state.stop.stop_requested() || state.names.spent()) return {};  // names may lack their scopes
  if (found.empty() && line.line > 0) found.push_back({.entry = {}, .line = std::move(line)});
  return found;
}

Result<FunctionInfo> function_around(const DebugInfo& info, VirtAddr pc) {
  DebugState& state = *info.state();
  const std::scoped_lock lock(state.mutex);
  const auto unit = state.units.unit_at(pc);
  const auto chain = unit ? chain_at(state, *unit, pc) : std::vector<Dwarf_Die>();
  TRY(state.may_read_on());
  if (chain.empty())
    return fail(ErrorKind::not_found,
                fmt::format("the debug information in {} has no function at {:#x}", info.path().string(), pc.value));
  const Dwarf_Die& innermost = chain.back();
  FunctionInfo function = describe(state, innermost);
  function.declared = declared_at(innermost);
  Instance& instance = function.instances.emplace_back();
  instance.pc = pc;
  instance.die = state.dies.id_of(innermost, chain.front());
  instance.inlined = chain.size() > 1;
  if (instance.inlined) {
    instance.caller = state.names.qualified(chain.front());
    instance.where_called = called_at(innermost);
  }
  if (state.names.spent()) return fail(state.names_spent());
  return function;
}

}  // namespace usdt::dwarf
