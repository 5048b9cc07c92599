// SPDX-License-Identifier: BSD-2-Clause
// Calls that debug information tells of. Private to dwarf/.
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>

#include "dwarf/die.hpp"

namespace usdt::dwarf {

/// Calls `visit(call)` for each call in the functions below `parent`, a unit or a part of one. `visit` may go through
/// the call's children by `tree`, or leave them.
template <class Visit>
void for_each_call(Dwarf_Die parent, TreeWalk& tree, const Visit& visit, unsigned depth = 0) {
  if (depth == kDeepestTree) return;
  tree.children(parent, [&](Dwarf_Die child) {
    switch (dwarf_tag(&child)) {
      case DW_TAG_call_site:
      case DW_TAG_GNU_call_site:
        visit(child);
        break;
      case DW_TAG_namespace:
      case DW_TAG_subprogram:
      case DW_TAG_lexical_block:
      case DW_TAG_inlined_subroutine:
        for_each_call(child, tree, visit, depth + 1);
        break;
      default:
        break;
    }
    return true;
  });
}

}  // namespace usdt::dwarf
