// SPDX-License-Identifier: BSD-2-Clause
// How many hits there were in all, of which only those of some windows were seen. Private to event/.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "event/stretches.hpp"
#include "usdt/table.hpp"

namespace usdt::event {

/// Holds what was seen so far, at one moment. Numbers only grow.
struct SeenHits {
  std::vector<std::uint64_t> hits = {};  ///< by site, for which the filter holds
  std::vector<TableRow> rows = {};       ///< in the order of their keys
};

/// Adds up hits and rows window by window, each with the weight of its stretch of work.
class HitEstimates {
 public:
  explicit HitEstimates(std::uint32_t sites);

  /// So much work was done, which was looked at or not.
  void pass(double work, bool looked_at) noexcept { (looked_at ? current_.seen : current_.unseen) += work; }
  /// A window is over, at whose end so much has been seen.
  void end_window(SeenHits seen);

  /// Returns estimates by site, when so many hits have been seen.
  [[nodiscard]] std::vector<double> hits(const std::vector<std::uint64_t>& seen) const;
  /// Returns estimated rows, when so much has been seen of them.
  [[nodiscard]] std::vector<TableRow> rows(const std::vector<TableRow>& seen) const;

 private:
  /// Two stretches whose weights may still change, and what was seen before each. All before is in `hits_` and `rows_`.
  Stretch last_, current_;
  SeenHits before_last_, before_current_;
  std::vector<double> hits_;
  std::map<std::vector<TableKey>, TableRow> rows_;
};

}  // namespace usdt::event
