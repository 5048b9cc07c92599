// SPDX-License-Identifier: BSD-2-Clause
#include "event/overhead_meter.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "usdt/clock.hpp"

namespace usdt::event {
namespace {

/// Prices are not exact: whatever hits are said to cost, something is left for the processes' own work.
constexpr double kLeastWork = 0.02;

}  // namespace

OverheadMeter::OverheadMeter(const SiteCounts& counts, std::uint32_t sites, HitPrices prices, TracedTime time)
    : counts_(counts), sites_(sites), prices_(std::move(prices)), time_(std::move(time)), used_(time_.read()) {
  first_ = last_ = measure();
}

OverheadReading OverheadMeter::measure() {
  OverheadReading reading{.now = std::chrono::nanoseconds(event_clock())};
  hits_ = 0;
  for (std::uint32_t site = 0; site < sites_; ++site) {
    const std::uint64_t hits = counts_.of(site).hits;
    hits_ += hits;
    reading.cost += static_cast<double>(hits) * prices_.of_trap(site);
  }
  reading.cost += prices_.of_programs(hits_);
  const double used = time_.read();
  const double more = std::max(used - used_, 0.0);
  const double paid = std::max(reading.cost - last_.cost, 0.0);
  used_ = used;
  reading.work = last_.work + (time_.is_of_processors() ? std::max(more - paid, kLeastWork * more) : more);
  return reading;
}

const OverheadReading& OverheadMeter::read() { return last_ = measure(); }

std::chrono::nanoseconds OverheadMeter::price_of_hit() const {
  const double cost = last_.cost - first_.cost;
  return std::chrono::nanoseconds(hits_ > 0 ? std::llround(cost / static_cast<double>(hits_)) : 0);
}

}  // namespace usdt::event
