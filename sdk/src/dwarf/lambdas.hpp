// SPDX-License-Identifier: BSD-2-Clause
// Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <string>

#include "dwarf/debug_state.hpp"

namespace usdt::dwarf {

/// The name of a lambda expression's function, for which the linker has none, as its symbol would have it; empty: `die`
/// is no such function.
[[nodiscard]] std::string lambda_name(DebugState& state, Dwarf_Die die);

}  // namespace usdt::dwarf
