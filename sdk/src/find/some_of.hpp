// SPDX-License-Identifier: BSD-2-Clause
// Names of functions in a notice: the first of them, so that many are one line. Private to find/.
#pragma once

#include <string>
#include <vector>

namespace usdt::find {

/// "a, b, c and 5 other functions".
std::string some_of(std::vector<std::string> names);

}  // namespace usdt::find
