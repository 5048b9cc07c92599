// SPDX-License-Identifier: BSD-2-Clause
#include "find/some_of.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace usdt::find {

FirstOnes first_ones(std::vector<std::string> all, std::string_view separator) {
  constexpr std::size_t most = 3;
  const std::size_t others = all.size() - std::min(all.size(), most);
  all.resize(all.size() - others);
  return {fmt::format("{}", fmt::join(all, separator)), others};
}

std::string some_of(std::vector<std::string> names) {
  const auto [shown, others] = first_ones(std::move(names), ", ");
  if (others == 0) return shown;
  return others == 1 ? shown + " and another function" : fmt::format("{} and {} other functions", shown, others);
}

}  // namespace usdt::find
