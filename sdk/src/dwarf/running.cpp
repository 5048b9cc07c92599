// SPDX-License-Identifier: BSD-2-Clause
// Which functions run at an address: one, and those that are inlined there.
#include <fmt/format.h>

#include <algorithm>

#include "dwarf/die.hpp"
#include "dwarf/impl.hpp"

namespace usdt::dwarf {
namespace {

/// The chain of functions around an address in one unit, outermost first.
class Around {
 public:
  Around(VirtAddr pc, std::uint64_t steps) : pc_(pc), steps_(steps) {}

  [[nodiscard]] std::vector<Dwarf_Die> find(Dwarf_Die unit) {
    search(unit, 0);
    return std::move(chain_);
  }

 private:
  /// True: what has the address was found.
  bool search(Dwarf_Die parent, unsigned depth) {
    bool found = false;
    if (depth == deepest_tree) return found;
    for_each_child(parent, steps_, [&](Dwarf_Die child) {
      found = enter(child, depth);
      return !found;
    });
    return found;
  }

  bool enter(Dwarf_Die child, unsigned depth) {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram:
        // A nested function (GNU C, Ada) is beside the code of the one it is in.
        if (!has_pc(child, pc_)) return entry_of(child) && search_nested(child, depth);
        chain_.assign(1, child);
        break;
      case DW_TAG_inlined_subroutine:
        if (!has_pc(child, pc_)) return false;
        chain_.push_back(child);
        break;
      case DW_TAG_lexical_block:
      case DW_TAG_try_block:
      case DW_TAG_catch_block:
        return (has_pc(child, pc_) || !entry_of(child)) && search(child, depth + 1);
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_structure_type:
      case DW_TAG_class_type:
      case DW_TAG_union_type:
        return search(child, depth + 1);
      default:
        return false;
    }
    search(child, depth + 1);
    return true;
  }

  /// Of a function that has not the address itself: only functions in it can.
  bool search_nested(Dwarf_Die function, unsigned depth) {
    bool found = false;
    if (depth == deepest_tree) return found;
    for_each_child(function, steps_, [&](Dwarf_Die child) {
      found = dwarf_tag(&child) == DW_TAG_subprogram && enter(child, depth + 1);
      return !found;
    });
    return found;
  }

  VirtAddr pc_;
  std::uint64_t steps_;
  std::vector<Dwarf_Die> chain_;
};

}  // namespace

std::vector<RunningFunction> DebugInfo::functions_at(VirtAddr pc) const {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->code.contains(pc)) return {};
  const auto unit = impl_->unit_at(pc);
  if (!unit) return {};
  SourceLine line = line_at(*unit, pc);
  std::vector<RunningFunction> found;
  const std::vector<Dwarf_Die> chain = Around(pc, impl_->most_steps(*unit)).find(*unit);
  for (std::size_t i = chain.size(); i-- > 0;) {
    FunctionInfo info = impl_->describe(chain[i]);
    RunningFunction& running = found.emplace_back();
    running.name = std::move(info.qualified);
    running.linkage_name = std::move(info.linkage_name);
    running.entry = entry_of(chain.front());
    running.line = std::move(line);
    running.inlined = i > 0;
    line = i > 0 ? called_at(chain[i]) : SourceLine{};
  }
  if (found.empty() && line.line > 0) found.push_back({.entry = {}, .line = std::move(line)});
  return found;
}

Result<FunctionInfo> DebugInfo::function_around(VirtAddr pc) const {
  const std::scoped_lock lock(impl_->mutex);
  const auto unit = impl_->unit_at(pc);
  const auto chain = unit ? Around(pc, impl_->most_steps(*unit)).find(*unit) : std::vector<Dwarf_Die>();
  if (chain.empty())
    return fail(ErrorKind::not_found,
                fmt::format("the debug information in {} has no function at {:#x}", path().string(), pc.value));
  const Dwarf_Die& innermost = chain.back();
  FunctionInfo info = impl_->describe(innermost);
  info.declared = declared_at(innermost);
  Instance& instance = info.instances.emplace_back();
  instance.pc = pc;
  instance.die = impl_->id_of(innermost, chain.front());
  instance.inlined = chain.size() > 1;
  if (instance.inlined) {
    instance.caller = impl_->names.qualified(chain.front());
    instance.where_called = called_at(innermost);
  }
  return info;
}

}  // namespace usdt::dwarf
