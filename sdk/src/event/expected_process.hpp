// SPDX-License-Identifier: BSD-2-Clause
// When to look at a process that has just begun, as a command has: it executes its program soon, perhaps before its
// first event. Private to event/.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "usdt/clock.hpp"

namespace usdt::event {

/// At first again and again, then more and more seldom, for some seconds in all.
class ExpectedProcess {
 public:
  /// Whether it is time to look. Then there is a pause, which is longer each time.
  [[nodiscard]] bool is_due() {
    constexpr std::uint64_t shortest = 2'000'000, longest = 1'000'000'000;
    if (pause_ > longest) end();
    if (pause_ == UINT64_MAX) return false;
    const std::uint64_t now = event_clock();
    if (now < next_) return false;
    pause_ = std::max(2 * pause_, shortest);
    next_ = now + pause_;
    return true;
  }
  /// How long nobody need wait for it, at most `longest`.
  [[nodiscard]] std::chrono::milliseconds until_due(std::chrono::milliseconds longest) const {
    if (pause_ == UINT64_MAX) return longest;
    const std::uint64_t now = event_clock();
    return std::min(
        longest, std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(next_ > now ? next_ - now : 0)));
  }
  /// It is known: nobody looks any more.
  void end() noexcept { pause_ = UINT64_MAX; }

 private:
  std::uint64_t next_ = 0;   ///< when it is looked at again, ns of CLOCK_MONOTONIC
  std::uint64_t pause_ = 0;  ///< from the last time until then
};

}  // namespace usdt::event
