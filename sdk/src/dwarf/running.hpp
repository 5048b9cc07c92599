// SPDX-License-Identifier: BSD-2-Clause
// Tells what runs at an address of a program: a function, and those that are inlined there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dwarf/debug_info.hpp"
#include "dwarf/function_info.hpp"
#include "usdt/address.hpp"
#include "usdt/result.hpp"

namespace usdt::dwarf {

/// A function that runs at an address.
struct RunningFunction {
  std::string name = {};          ///< FunctionInfo::qualified; empty: only the line is known
  std::string linkage_name = {};  ///< as the linker knows it; empty: it is the name
  std::optional<VirtAddr> entry;  ///< of the function whose code it is
  SourceLine line = {};           ///< where it is; of what others are inlined into, the call
  bool inlined = false;
};

/// Returns what runs at `pc`: the innermost inlined function first, at last the one whose code it is. Empty: not known.
/// Reads one unit.
[[nodiscard]] std::vector<RunningFunction> functions_at(const DebugInfo& info, VirtAddr pc);

/// Returns the function whose code has `pc`, the innermost where it is inlined, with that one instance, whose `pc` it
/// is, wherever it begins. Errors: not_found, malformed.
[[nodiscard]] Result<FunctionInfo> function_around(const DebugInfo& info, VirtAddr pc);

}  // namespace usdt::dwarf
