// SPDX-License-Identifier: BSD-2-Clause
// Measures what the traced processes did, and what their hits cost them. Private to event/.
#pragma once

#include <chrono>
#include <cstdint>

#include "event/hit_prices.hpp"
#include "event/overhead_budget.hpp"
#include "event/site_counts.hpp"
#include "event/traced_time.hpp"

namespace usdt::event {

/// Reads both since it was made. It looks at counters of a trace, which outlive it but for when nothing is read any
/// more.
class OverheadMeter {
 public:
  OverheadMeter(const SiteCounts& counts, std::uint32_t sites, HitPrices prices, TracedTime time);

  /// Reads how far the trace is by now; last() from then on.
  const OverheadReading& read();
  [[nodiscard]] const OverheadReading& first() const noexcept { return first_; }
  [[nodiscard]] const OverheadReading& last() const noexcept { return last_; }

  /// Returns how many hits there were at the last reading.
  [[nodiscard]] std::uint64_t hits() const noexcept { return hits_; }
  /// Returns what one of them cost, in the mean.
  [[nodiscard]] std::chrono::nanoseconds price_of_hit() const;
  /// TracedTime::is_of_processors().
  [[nodiscard]] bool is_of_processors() const noexcept { return time_.is_of_processors(); }
  /// HitPrices::has_clocks().
  [[nodiscard]] bool has_clocks() const noexcept { return prices_.has_clocks(); }

 private:
  [[nodiscard]] OverheadReading measure();

  const SiteCounts& counts_;
  std::uint32_t sites_;
  HitPrices prices_;
  TracedTime time_;
  double used_;  ///< TracedTime
  std::uint64_t hits_ = 0;
  OverheadReading last_ = {};
  OverheadReading first_ = {};
};

}  // namespace usdt::event
