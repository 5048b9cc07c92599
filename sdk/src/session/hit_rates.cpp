// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <utility>

#include "usdt/view.hpp"

namespace usdt {
inline namespace v1 {

void HitRates::look(const View& view, const std::vector<TableRow>& rows, Clock::time_point now, bool whole) {
  before_ = whole ? Counts() : std::exchange(now_, {});
  now_.clear();
  for (const TableRow& row : rows) {
    std::vector<TableKey> keys = row.keys;
    if (view.folds_last_key()) keys.pop_back();
    now_[std::move(keys)] += row.count;
  }
  seconds_ = std::chrono::duration<double>(now - (whole ? began_ : looked_)).count();
  looked_ = now;
}

double HitRates::of(const std::vector<TableKey>& keys) const {
  const auto count_in = [&](const Counts& counts) {
    const auto found = counts.find(keys);
    return found == counts.end() ? 0.0 : static_cast<double>(found->second);
  };
  // An estimate may become smaller.
  return seconds_ > 0 ? std::max(count_in(now_) - count_in(before_), 0.0) / seconds_ : 0;
}

}  // namespace v1
}  // namespace usdt
