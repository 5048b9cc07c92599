// SPDX-License-Identifier: BSD-2-Clause
// How long the thread that takes events may look at processes meanwhile. Private to event/.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "usdt/clock.hpp"

namespace usdt::event {

/// Anybody may run many processes that take long to look at, as those do that have mapped thousands of files: events
/// wait for a second in all, and from then on for a fifth of the time. Times are ns of event_clock().
class LookBudget {
 public:
  explicit LookBudget(std::uint64_t now = event_clock()) noexcept : last_(now) {}

  [[nodiscard]] bool has_time(std::uint64_t now = event_clock()) noexcept {
    const std::uint64_t passed = now > last_ ? now - last_ : 0;
    last_ = std::max(now, last_);
    left_ = std::min(kMost, left_ + static_cast<std::int64_t>(passed / kPart));
    return left_ > 0;
  }
  /// A look that takes longer than what is left is paid for later.
  void spend(std::uint64_t took) noexcept { left_ -= static_cast<std::int64_t>(took); }
  void spend(std::chrono::nanoseconds took) noexcept { left_ -= took.count(); }

 private:
  static constexpr std::int64_t kMost = 1'000'000'000;
  static constexpr std::uint64_t kPart = 5;

  std::int64_t left_ = kMost;
  std::uint64_t last_;
};

}  // namespace usdt::event
