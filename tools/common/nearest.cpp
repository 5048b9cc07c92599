// SPDX-License-Identifier: BSD-2-Clause
#include "common/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace usdt::tools {

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = word.size() / 3 + 2;  // more changes than that make another word
  for (const std::string& name : names) {
    std::vector<std::size_t> row(name.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 0; i < word.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i + 1);
      for (std::size_t j = 0; j < name.size(); ++j)
        diagonal =
            std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (word[i] == name[j] ? 0 : 1)}));
    }
    if (row.back() >= least) continue;
    least = row.back();
    best = name;
  }
  return best;
}

}  // namespace usdt::tools
