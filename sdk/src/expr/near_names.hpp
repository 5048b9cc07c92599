// SPDX-License-Identifier: BSD-2-Clause
// Suggests what a name that no argument has may have been meant to be. Private to the SDK.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "usdt/arg.hpp"

namespace usdt::expr {

/// " (did you mean retval?)" for the end of a message, by what other languages call the words of questions, by near
/// ones, and by near names of `args`; empty where there is none.
[[nodiscard]] std::string near_names(std::string_view written, const std::vector<Arg>& args);

}  // namespace usdt::expr
