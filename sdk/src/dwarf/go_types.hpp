// SPDX-License-Identifier: BSD-2-Clause
// Reads which types of a Go program stand for what in its interfaces. Private to dwarf/.
#pragma once

#include "dwarf/debug_state.hpp"
#include "dwarf/go_type_list.hpp"

namespace usdt::dwarf {

/// Go's linker gives a type that the program may need at run time its distance from the symbol runtime.types
/// (DW_AT_go_runtime_type, dwarf.go of cmd/internal). Errors: not_supported (the symbol is not there, or the program is
/// position-independent, so that addresses are known only at run time), stopped.
[[nodiscard]] Result<GoTypes> read_go_types(DebugState& state);

}  // namespace usdt::dwarf
