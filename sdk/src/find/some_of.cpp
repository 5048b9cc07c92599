// SPDX-License-Identifier: BSD-2-Clause
#include "find/some_of.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace usdt::find {

std::string some_of(std::vector<std::string> names) {
  constexpr std::size_t most = 3;
  const std::size_t others = names.size() - std::min(names.size(), most);
  names.resize(names.size() - others);
  return fmt::format("{}{}", fmt::join(names, ", "),
                     others == 0   ? ""
                     : others == 1 ? " and another function"
                                   : fmt::format(" and {} other functions", others));
}

}  // namespace usdt::find
