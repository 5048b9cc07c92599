// SPDX-License-Identifier: BSD-2-Clause
#include "base/near_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace usdt {
inline namespace v1 {
namespace {

constexpr std::size_t kLongest = 64;
constexpr std::size_t kSuggestions = 3;

}  // namespace

// Optimal string alignment, three rows.
unsigned typing_distance(std::string_view a, std::string_view b, unsigned most) noexcept {
  if (a.size() > kLongest || b.size() > kLongest) return most + 1;
  if (a.size() > b.size() + most || b.size() > a.size() + most) return most + 1;
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

unsigned likely_mistakes(std::string_view name) noexcept { return name.size() < 5 ? 1 : 2; }

void NearTexts::offer(std::string_view name) {
  if (const unsigned changes = typing_distance(wanted_, name, most_); changes <= most_)
    found_.emplace_back(changes, name);
}

std::vector<std::string> NearTexts::best() && {
  std::ranges::sort(found_);
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min(found_.size(), kSuggestions); ++i) out.push_back(std::move(found_[i].second));
  return out;
}

std::string NearTexts::question() && {
  std::string text;
  for (const std::string& each : std::move(*this).best()) text += (text.empty() ? "; did you mean " : ", ") + each;
  return text.empty() ? text : text + "?";
}

}  // namespace v1
}  // namespace usdt
