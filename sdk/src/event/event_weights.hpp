// SPDX-License-Identifier: BSD-2-Clause
// Says for how many hits an event stands, if hits are not looked at all the time. Private to event/.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

namespace usdt::event {

/// The weights of events by when they were recorded. For any thread.
class EventWeights {
 public:
  EventWeights() { weights_.push_back({}); }

  /// Gives events that weight from now on.
  void weigh(double weight);
  /// Returns the weight of an event of that time, ns of CLOCK_MONOTONIC.
  [[nodiscard]] double at(std::uint64_t timestamp) const;
  /// Returns the weight of events by now.
  [[nodiscard]] double latest() const;

 private:
  /// From when on events have that weight.
  struct Weight {
    std::uint64_t from = 0;
    double weight = 1;
  };

  mutable std::mutex mutex_;
  std::deque<Weight> weights_;  ///< by time, never empty
};

}  // namespace usdt::event
