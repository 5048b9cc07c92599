// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <vector>

#include "usdt/decode.hpp"

namespace usdt::tools {

/// "(i32, u64, f64)": the types of a site's arguments.
[[nodiscard]] std::string signature(const std::vector<Arg>& args);

}  // namespace usdt::tools
