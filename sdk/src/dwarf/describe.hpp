// SPDX-License-Identifier: BSD-2-Clause
// Reads what lists say of each function. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <vector>

#include "dwarf/debug_state.hpp"
#include "dwarf/function_info.hpp"

namespace usdt::dwarf {

/// Returns names and flags of the function `die` is; neither `declared` nor instances.
[[nodiscard]] FunctionInfo describe(DebugState& state, Dwarf_Die die);
/// Returns where `die`, or the class of a lambda expression that it belongs to, was declared.
[[nodiscard]] SourceLine place_of(DebugState& state, Dwarf_Die die);
/// Returns the functions of `unit` that have code, by where it begins; of several, first the one that the unit has
/// first.
[[nodiscard]] const std::vector<DieEntry>& entries_of(DebugState& state, Dwarf_Die unit);

}  // namespace usdt::dwarf
