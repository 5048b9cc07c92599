// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <utility>

#include "usdt/view.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// More stretches than a terminal has columns.
constexpr std::size_t kMostSlices = 4096;

void add_to(HeatSlice& into, const HeatSlice& slice) {
  into.from = std::min(into.from, slice.from);
  into.to = std::max(into.to, slice.to);
  for (const auto& [key, count] : slice.counts) into.counts[key] += count;
}

}  // namespace

HeatSlice HeatSlicer::cut(const PlannedTable& table, const std::vector<TableRow>& rows, std::int64_t to) {
  HeatSlice slice{.from = from_, .to = to, .counts = {}};
  if (!table.keys.empty()) slice.reals = table.keys.back().ranges_of;  // no site was recorded: View::shown_keys()
  for (const TableRow& row : rows) {
    const auto* key = std::get_if<std::int64_t>(&row.keys.back());
    if (key == nullptr) continue;
    std::uint64_t& before = before_[*key];
    if (row.count > before) slice.counts[*key] = row.count - before;
    before = row.count;
  }
  from_ = to;
  return slice;
}

void HeatMap::add(HeatSlice slice) {
  slices_.push_back(std::move(slice));
  if (slices_.size() <= kMostSlices) return;
  for (std::size_t i = 0; 2 * i < slices_.size(); ++i) {
    if (i > 0) slices_[i] = std::move(slices_[2 * i]);
    if (2 * i + 1 < slices_.size()) add_to(slices_[i], slices_[2 * i + 1]);
  }
  slices_.resize((slices_.size() + 1) / 2);
}

}  // namespace v1
}  // namespace usdt
