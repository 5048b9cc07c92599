// SPDX-License-Identifier: BSD-2-Clause
#include "event/hit_estimates.hpp"

#include <cstddef>
#include <utility>

namespace usdt::event {
namespace {

/// Adds what came from one moment to the other, so many times. Rows are never taken away, and both are in the order of
/// their keys.
void add_rows(std::map<std::vector<TableKey>, TableRow>& all, const std::vector<TableRow>& from,
              const std::vector<TableRow>& to, double weight) {
  auto before = from.begin();
  for (const TableRow& row : to) {
    while (before != from.end() && before->keys < row.keys) ++before;
    TableRow more = row;
    if (before != from.end() && before->keys == row.keys) more.subtract(*before);
    if (more.count == 0) continue;
    more.scale(weight);
    TableRow& whole = all[row.keys];
    whole.keys = row.keys;
    whole.add(more);
  }
}

void add_hits(std::vector<double>& all, const std::vector<std::uint64_t>& from, const std::vector<std::uint64_t>& to,
              double weight) {
  for (std::size_t i = 0; i < all.size(); ++i) all[i] += weight * static_cast<double>(to[i] - from[i]);
}

}  // namespace

HitEstimates::HitEstimates(std::uint32_t sites) : hits_(sites) {
  before_last_.hits.resize(sites);
  before_current_.hits.resize(sites);
}

void HitEstimates::end_window(SeenHits seen) {
  const Stretch over = std::exchange(current_, {});
  // A stretch that has seen too little to weigh the time before it is joined with the stretch before.
  if (last_.seen > 0 && over.seen < last_.seen / 4) {
    last_ = last_ + over;
  } else {
    add_hits(hits_, before_last_.hits, before_current_.hits, last_.weight());
    add_rows(rows_, before_last_.rows, before_current_.rows, last_.weight());
    last_ = over;
    before_last_ = std::move(before_current_);
  }
  before_current_ = std::move(seen);
}

std::vector<double> HitEstimates::hits(const std::vector<std::uint64_t>& seen) const {
  const StretchWeights weights(last_, current_);
  std::vector<double> all = hits_;
  add_hits(all, before_last_.hits, before_current_.hits, weights.before);
  add_hits(all, before_current_.hits, seen, weights.now);
  return all;
}

std::vector<TableRow> HitEstimates::rows(const std::vector<TableRow>& seen) const {
  const StretchWeights weights(last_, current_);
  auto all = rows_;
  add_rows(all, before_last_.rows, before_current_.rows, weights.before);
  add_rows(all, before_current_.rows, seen, weights.now);
  std::vector<TableRow> rows;
  for (auto& [keys, row] : all) rows.push_back(std::move(row));
  return rows;
}

}  // namespace usdt::event
