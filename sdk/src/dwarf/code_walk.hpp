// SPDX-License-Identifier: BSD-2-Clause
// Walks through the entries of a unit that have code. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "dwarf/debug_state.hpp"
#include "dwarf/die.hpp"
#include "usdt/stop.hpp"

namespace usdt::dwarf {

/// Whether an entry of this tag has code, or others that do.
inline bool may_hold_code(int tag) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
      return true;
    default:
      return false;
  }
}

/// The function and the scope that an entry with code is in.
struct Inside {
  std::optional<Dwarf_Die> function;  ///< the subprogram
  std::optional<Dwarf_Die> scope;     ///< that, or the instance inlined into it
};

/// Finds the unit that describes the code of a function which several units have. The linker keeps one copy. GNU ld
/// lets all units whose copies were of its size describe it: only the first one's description is of its code.
class Owners {
 public:
  explicit Owners(DebugState& state) : state_(state) {}

  /// Whether `function` of `unit`, which units are asked for in their order, is what is at `entry`.
  [[nodiscard]] bool owns(Dwarf_Die unit, Dwarf_Die function, VirtAddr entry) {
    if (dwarf_cu_getdwarf(unit.cu) == state_.files.main.dwarf.get())
      if (const auto first = state_.units.listed_at(entry))
        return *first == dwarf_dieoffset(&unit) - dwarf_cuoffset(&unit);
    std::string_view name = linkage_name_of(function);
    if (name.empty()) name = text(attribute(function, DW_AT_name));
    const auto [known, is_new] = known_.try_emplace(entry, Owner{unit.addr, name});
    return is_new || known->second.unit == unit.addr || known->second.name != name;
  }

 private:
  struct Owner {
    const void* unit;
    std::string_view name;
  };
  DebugState& state_;
  std::map<VirtAddr, Owner> known_;
};

/// Walks a unit for code: calls `visit(die, its entry, what it is in)` for each subprogram that has an entry and for
/// each inlined instance.
template <class Visit>
class CodeWalk {
 public:
  /// `owners`: leaves out what is another unit's; null: nothing.
  CodeWalk(DebugState& state, const StopToken& stop, Owners* owners, Visit visit)
      : state_(state), tree_(stop), owners_(owners), visit_(std::move(visit)) {}

  void walk_unit(Dwarf_Die unit) {
    unit_ = unit;
    walk(unit, {}, 0);
  }
  [[nodiscard]] bool in_circles() const noexcept { return tree_.in_circles(); }

 private:
  void walk(Dwarf_Die parent, const Inside& inside, unsigned depth) {
    if (depth == kDeepestTree || done_) return;
    tree_.children(parent, [&](Dwarf_Die child) {
      const int tag = dwarf_tag(&child);
      if (may_hold_code(tag)) enter(child, tag, inside, depth);
      return !done_;
    });
  }

  void enter(Dwarf_Die child, int tag, Inside inside, unsigned depth) {
    if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine) {
      const auto entry = state_.entry_of(child);
      // The linker leaves what it discarded at address 0 and the like; so is all that is in it.
      if (entry && !state_.files.code.contains(*entry)) return;
      if (entry && owners_ != nullptr && tag == DW_TAG_subprogram && !owners_->owns(unit_, child, *entry)) return;
      if (entry && !visit_(child, *entry, inside)) {
        done_ = true;
        return;
      }
      inside.scope = child;
      if (tag == DW_TAG_subprogram) inside.function = child;
    }
    walk(child, inside, depth + 1);
  }

  DebugState& state_;
  TreeWalk tree_;
  Owners* owners_;
  Visit visit_;
  Dwarf_Die unit_ = {};
  bool done_ = false;
};

}  // namespace usdt::dwarf
