// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string_view>

namespace usdt_list {

inline constexpr std::string_view kTool = "usdt-list";

/// Exit codes (docs/tools.md).
enum ExitCode : int {
  kFound = 0,
  kNothing = 1,  ///< nothing matched
  kTrouble = 2,  ///< wrong usage, or a target that cannot be read (others are still listed)
  kFaults = 3,   ///< --lint found some
};

}  // namespace usdt_list
