// SPDX-License-Identifier: BSD-2-Clause
// The functions of a program by name and by address.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dwarf/debug_info.hpp"
#include "dwarf/function_info.hpp"
#include "usdt/address.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt::dwarf {

/// A hint about the functions that are looked for, so that not all units need to be read. The linkage name of each, or
/// its declared name where it has none, has one of `words` in it as it stands, and satisfies `may_be`. Words of less
/// than three bytes, or too many, make no difference.
struct NameHint {
  std::vector<std::string> words;
  std::function<bool(std::string_view name)> may_be;  ///< called for other texts, too
};

/// Whether a function is meant; called with `instances` still empty, once for each declaration.
using WantedFunction = std::function<bool(const FunctionInfo&)>;

/// Returns the function whose code begins at `entry`, with that one instance; of several the one that the linker knows
/// as `symbol`, else the first. Reads the address table (.debug_aranges, else the head of each unit) and one unit.
/// Errors: not_found, stopped, limit.
[[nodiscard]] Result<FunctionInfo> function_at(const DebugInfo& info, VirtAddr entry, std::string_view symbol = {});

/// Returns every function that is `wanted` and has code in the file, its own or inlined, by name. Reads all units.
/// Errors: malformed, stopped, limit; none found is no error.
[[nodiscard]] Result<std::vector<FunctionInfo>> find_functions(const DebugInfo& info, const WantedFunction& wanted,
                                                               const StopToken& stop = {});
/// As above, of names about which something is known: `hint` holds for all that is `wanted`. Reads the units that lead
/// to such names.
[[nodiscard]] Result<std::vector<FunctionInfo>> find_functions(const DebugInfo& info, const WantedFunction& wanted,
                                                               const NameHint& hint, const StopToken& stop = {});
/// Returns those called `name`: as declared, qualified, or as the linker knows them.
[[nodiscard]] Result<std::vector<FunctionInfo>> functions_named(const DebugInfo& info, std::string_view name,
                                                                const StopToken& stop = {});

/// Returns those of `names`, as the linker knows them, that the source defines as functions of their own. Linkers and
/// compilers fold functions whose code is equal: one of two names at one address may be such a function, or only
/// another name. Reads the units that may have them, and those that have code at `addresses`. Errors: stopped.
[[nodiscard]] Result<std::vector<std::string>> find_defined(const DebugInfo& info,
                                                            const std::vector<std::string>& names,
                                                            const std::vector<VirtAddr>& addresses,
                                                            const StopToken& stop = {});

}  // namespace usdt::dwarf
