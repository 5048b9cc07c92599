// SPDX-License-Identifier: BSD-2-Clause
#include "dwarf/describe.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "dwarf/code_walk.hpp"
#include "dwarf/die.hpp"
#include "dwarf/lambdas.hpp"
#include "dwarf/types.hpp"

namespace usdt::dwarf {

FunctionInfo describe(DebugState& state, Dwarf_Die die) {
  FunctionInfo info;
  info.name = text(attribute(die, DW_AT_name));
  info.linkage_name = text(attribute(die, DW_AT_linkage_name));
  if (info.linkage_name.empty()) info.linkage_name = text(attribute(die, DW_AT_MIPS_linkage_name));
  info.qualified = state.names.qualified(die);
  if (info.linkage_name.empty())
    if (std::string lambda = lambda_name(state, die); !lambda.empty()) info.qualified = std::move(lambda);
  info.external = flag(attribute(die, DW_AT_external));
  info.noreturn = flag(attribute(die, DW_AT_noreturn));
  info.go = language_of(die) == Language::go;
  return info;
}

SourceLine place_of(DebugState& state, Dwarf_Die die) {
  SourceLine declared = declared_at(die);
  if (!declared.file.empty()) return declared;
  const auto scope = state.names.scope_of(origin_of(die));
  return scope ? declared_at(*scope) : declared;
}

const std::vector<DieEntry>& entries_of(DebugState& state, Dwarf_Die unit) {
  return state.function_entries.of(unit, [&] {
    std::vector<DieEntry> entries;
    CodeWalk walk(state, state.stop, nullptr, [&entries](Dwarf_Die die, VirtAddr pc, const Inside&) {
      if (dwarf_tag(&die) == DW_TAG_subprogram) entries.push_back({pc, die});
      return true;
    });
    walk.walk_unit(unit);
    std::ranges::stable_sort(entries, {}, &DieEntry::pc);
    return entries;
  });
}

}  // namespace usdt::dwarf
