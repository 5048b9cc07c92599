// SPDX-License-Identifier: BSD-2-Clause
#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace usdt::bench {

void Table::print() const {
  std::vector<std::size_t> widths(rows_.front().size(), 3);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      fmt::print("| {:<{}} ", i < rows_[r].size() ? rows_[r][i] : "", widths[i]);
    fmt::print("|\n");
    if (r > 0) continue;
    for (const std::size_t width : widths) fmt::print("| {:-<{}} ", "", width);
    fmt::print("|\n");
  }
  std::fflush(stdout);
}

}  // namespace usdt::bench
