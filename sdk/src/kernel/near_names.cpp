// SPDX-License-Identifier: BSD-2-Clause
// What a name that no function has may have been meant to be.
#include <algorithm>
#include <array>
#include <utility>

#include "kernel/catalogue.hpp"

namespace usdt::kernel {
namespace {

constexpr std::size_t kLongest = 64;  ///< of names that are compared: longer ones are pasted, not typed
constexpr unsigned kSuggestions = 3;

/// Letters inserted, left out, changed or swapped with their neighbour, between `a` and `b`; anything above `most` if
/// it is above (optimal string alignment, three rows).
unsigned distance(std::string_view a, std::string_view b, unsigned most) {
  std::array<std::array<unsigned, kLongest + 1>, 3> rows{};
  for (unsigned j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (unsigned i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& above2 = rows[(i + 1) % 3];
    row[0] = i;
    unsigned least = i;
    for (unsigned j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], above2[j - 2] + 1);
      least = std::min(least, row[j]);
    }
    if (least > most) return least;
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::vector<std::string_view> near_names(std::string_view name, std::span<const KernelFunction> all) {
  std::vector<std::pair<unsigned, std::string_view>> found;
  const unsigned most = name.size() < 5 ? 1 : 2;
  for (const KernelFunction& function : all) {
    const std::string_view other = function.name;
    // `x.isra.0` is what the compiler made of `x`.
    if (other.size() > name.size() && other[name.size()] == '.' && other.starts_with(name)) {
      found.emplace_back(0, other);
      continue;
    }
    if (name.size() > kLongest || other.size() > kLongest) continue;
    if (other.size() > name.size() + most || name.size() > other.size() + most) continue;
    if (const unsigned changes = distance(name, other, most); changes <= most) found.emplace_back(changes, other);
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.size() > kSuggestions) found.resize(kSuggestions);
  std::vector<std::string_view> out;
  for (const auto& [changes, other] : found) out.push_back(other);
  return out;
}

}  // namespace usdt::kernel
