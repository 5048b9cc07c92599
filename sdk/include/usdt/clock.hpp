// SPDX-License-Identifier: BSD-2-Clause
// The clock of events, and what the time of day was when they happened.
// event_clock() is now on the clock of Event::timestamp(); WallClock::offset_at() makes a time of day of a timestamp.
// event_clock() may be called by any thread; a WallClock by one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace usdt {
inline namespace v1 {

/// Returns now in ns on the clock that programs in the kernel have: CLOCK_MONOTONIC of the initial time namespace,
/// whatever namespace this process is in.
[[nodiscard]] std::uint64_t event_clock() noexcept;

/// Two clocks at one moment.
struct ClockReading {
  std::uint64_t event_clock = 0;  ///< event_clock()
  std::int64_t wall_offset = 0;   ///< the time of day (CLOCK_REALTIME) less event_clock, ns
};
/// Reads both clocks.
[[nodiscard]] ClockReading read_clocks() noexcept;

/// Knows how far the time of day is ahead of event_clock(), also when somebody sets the clock meanwhile: what happened
/// before has the time of day from before.
class WallClock {
 public:
  /// Reads both clocks.
  using Reader = ClockReading (*)();
  /// Keeps `read`, which it calls for the clocks. Tests pass a function of their own.
  explicit WallClock(Reader read = &read_clocks);
  /// Returns the time of day less event_clock() at `timestamp`, ns. A clock that was set between two calls counts as
  /// set before the first timestamp that is younger than the earlier call: call it soon after an event.
  [[nodiscard]] std::int64_t offset_at(std::uint64_t timestamp);

 private:
  struct Era {
    std::uint64_t since = 0;  ///< the first timestamp of it
    std::int64_t offset = 0;
  };
  void look(std::uint64_t timestamp);

  Reader read_;
  std::uint64_t known_until_ = 0;    ///< on event_clock(): when it was looked last
  std::uint64_t refined_until_ = 0;  ///< until then small differences do not matter
  std::vector<Era> eras_;            ///< from old to new, never empty
};

}  // namespace v1
}  // namespace usdt
