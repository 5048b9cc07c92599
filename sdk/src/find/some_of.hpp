// SPDX-License-Identifier: BSD-2-Clause
// Names in a notice: the first of them, so that many are one line. Private to find/.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace usdt::find {

struct FirstOnes {
  std::string shown;
  std::size_t others = 0;  ///< that are not shown
};
/// The first three.
FirstOnes first_ones(std::vector<std::string> all, std::string_view separator);

/// "a, b, c and 5 other functions".
std::string some_of(std::vector<std::string> names);

}  // namespace usdt::find
