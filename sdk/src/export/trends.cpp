// SPDX-License-Identifier: BSD-2-Clause
#include "export/trends.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace usdt::exports {
namespace {

std::vector<TableKey> keys_of(const ArrangedRow& row, std::size_t keys) {
  return {row.keys.begin(), row.keys.begin() + static_cast<std::ptrdiff_t>(std::min(keys, row.keys.size()))};
}

std::string_view block_of(double part) {
  constexpr std::array<std::string_view, 9> kBlocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  return kBlocks[static_cast<std::size_t>(std::clamp(std::ceil(part * 8), 0.0, 8.0))];
}

}  // namespace

void Trends::look(const std::vector<ArrangedRow>& rows, std::size_t keys) {
  ++looks_;
  for (auto& [each, history] : rows_) history.rates[looks_ % kMostLooks] = 0;
  for (const ArrangedRow& row : rows) {
    const double rate = row.per_second.value_or(0);
    if (!(rate > 0)) continue;
    History& history = rows_[keys_of(row, keys)];
    history.rates[looks_ % kMostLooks] = rate;
    history.seen = looks_;
  }
  std::erase_if(rows_, [this](const auto& row) { return row.second.seen + kMostLooks <= looks_; });
}

std::size_t Trends::width() const noexcept {
  return static_cast<std::size_t>(std::min<std::uint64_t>(looks_, kMostLooks));
}

std::string Trends::picture(const ArrangedRow& row, std::size_t keys) const {
  const auto known = rows_.find(keys_of(row, keys));
  if (known == rows_.end()) return std::string(width(), ' ');
  const std::array<double, kMostLooks>& rates = known->second.rates;
  const double most = *std::ranges::max_element(rates);
  std::string picture;
  for (std::uint64_t look = looks_ - width() + 1; look <= looks_; ++look)
    picture += block_of(most > 0 ? rates[look % kMostLooks] / most : 0);
  return picture;
}

}  // namespace usdt::exports
