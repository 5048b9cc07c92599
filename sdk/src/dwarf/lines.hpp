// SPDX-License-Identifier: BSD-2-Clause
// The line tables of a program: which source line an address is of, and which addresses a line has.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dwarf/debug_info.hpp"
#include "dwarf/function_info.hpp"
#include "usdt/address.hpp"
#include "usdt/result.hpp"
#include "usdt/stop.hpp"

namespace usdt::dwarf {

/// Returns where to put a breakpoint for a line: the address at which each block of its code begins as a statement.
/// `file`: the path, or its last components. Empty: there is no code of that line. Errors: not_found (no such source
/// file; near names), stopped.
[[nodiscard]] Result<std::vector<VirtAddr>> addresses_of_line(const DebugInfo& info, std::string_view file,
                                                              std::uint32_t line, const StopToken& stop = {});

/// Returns the first line behind `line` that addresses_of_line() has addresses of; nothing: none.
[[nodiscard]] std::optional<std::uint32_t> next_line_with_code(const DebugInfo& info, std::string_view file,
                                                               std::uint32_t line, const StopToken& stop = {});

/// Returns where an out-of-line instance has set up its frame, as the line table has it: debuggers stop there. Of
/// unoptimised code the parameters are in their slots then; of other code that promises nothing. Nothing: it does not
/// say.
[[nodiscard]] std::optional<VirtAddr> body_of(const DebugInfo& info, const Instance& instance);

}  // namespace usdt::dwarf
