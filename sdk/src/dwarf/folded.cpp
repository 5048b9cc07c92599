// SPDX-License-Identifier: BSD-2-Clause
// Functions that the source defines and whose code is that of others: linkers (--icf) and compilers (-fipa-icf) fold
// what is equal. What debug information has of such a function: of GCC, a definition without code; of lld, code at
// address 0; of gold, code at the same address as another one's.
#include <algorithm>
#include <set>
#include <string_view>

#include "dwarf/debug_state.hpp"
#include "dwarf/die.hpp"

namespace usdt::dwarf {
namespace {

/// Collects the definitions of a unit that have one of some names.
class Definitions {
 public:
  Definitions(const std::vector<std::string>& names, StopToken stop, Budget& budget)
      : names_(names.begin(), names.end()), stop_(std::move(stop)), budget_(budget) {}

  void unit(Dwarf_Die die) {
    // Assemblers make an entry of each name that an address has.
    if (dwarf_srclang(&die) == DW_LANG_Mips_Assembler) return;
    TreeWalk tree(stop_, &budget_);
    walk(die, tree, 0);
  }
  [[nodiscard]] std::vector<std::string> found() const { return {found_.begin(), found_.end()}; }

 private:
  void walk(Dwarf_Die parent, TreeWalk& tree, unsigned depth) {
    if (depth == kDeepestTree) return;
    tree.children(parent, [&](Dwarf_Die child) {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_subprogram) take(child);
      if (is_scope(tag) && tag != DW_TAG_subprogram) walk(child, tree, depth + 1);
      return true;
    });
  }

  void take(Dwarf_Die die) {
    if (flag(own_attribute(die, DW_AT_declaration)) || own_attribute(die, DW_AT_abstract_origin)) return;
    // A function that a header defines to be inlined ("extern inline") may have its code under another name.
    if (own_attribute(die, DW_AT_inline)) return;
    const auto known = names_.find(linkage_name_of(die));
    if (known != names_.end()) found_.insert(*known);
  }

  std::set<std::string, std::less<>> names_;
  std::set<std::string> found_;
  StopToken stop_;
  Budget& budget_;
};

}  // namespace

Result<std::vector<std::string>> find_defined(const DebugInfo& info, const std::vector<std::string>& names,
                                              const std::vector<VirtAddr>& addresses, const StopToken& stop) {
  DebugState& state = *info.state();
  const std::scoped_lock lock(state.mutex);
  const std::set<std::string_view> wanted(names.begin(), names.end());
  NameHint hint{.words = names, .may_be = [&](std::string_view name) { return wanted.contains(name); }};
  const UnitSet units = state.function_units.naming(hint, stop);
  Definitions definitions(names, stop, state.shared_reads);
  std::set<const void*> read;
  const auto read_once = [&](Dwarf_Die unit) {
    if (read.insert(unit.addr).second) definitions.unit(unit);
  };
  for (const VirtAddr address : addresses) {
    const auto unit = state.units.unit_at(address);
    if (!unit) continue;
    read_once(*unit);
    // After link-time optimisation code is in another unit than what the source says of it.
    const auto& entries = entries_of(state, *unit);
    for (auto at = std::ranges::lower_bound(entries, address, {}, &DieEntry::pc);
         at != entries.end() && at->pc == address; ++at) {
      Dwarf_Die origin = origin_of(at->die);
      Dwarf_Die there;
      if (dwarf_diecu(&origin, &there, nullptr, nullptr) != nullptr) read_once(there);
    }
  }
  for_each_unit(state.files.main.dwarf.get(), state.files.split, units, [&](Dwarf_Die unit) {
    read_once(unit);
    return !stop.stop_requested();
  });
  if (stop.stop_requested()) return fail(ErrorKind::stopped, "stopped while reading debug information");
  return definitions.found();
}

}  // namespace usdt::dwarf
