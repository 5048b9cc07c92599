// SPDX-License-Identifier: BSD-2-Clause
#include "event/event_weights.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "usdt/clock.hpp"

namespace usdt::event {
namespace {

/// Weights that are remembered, for events that are still in the ring.
constexpr std::size_t kMostWeights = 8192;

}  // namespace

void EventWeights::weigh(double weight) {
  const std::lock_guard lock(mutex_);
  weights_.push_back({static_cast<std::uint64_t>(event_clock()), weight});
  if (weights_.size() > kMostWeights) weights_.pop_front();
}

double EventWeights::at(std::uint64_t timestamp) const {
  const std::lock_guard lock(mutex_);
  const auto later = std::ranges::upper_bound(weights_, timestamp, {}, &Weight::from);
  return later == weights_.begin() ? weights_.front().weight : std::prev(later)->weight;
}

double EventWeights::latest() const {
  const std::lock_guard lock(mutex_);
  return weights_.back().weight;
}

}  // namespace usdt::event
