// SPDX-License-Identifier: BSD-2-Clause
// The time of day of what happened, whoever sets the clock meanwhile: judged by a clock that the test sets.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "usdt/clock.hpp"

namespace usdt {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
ClockReading now_is;

ClockReading read_ours() { return now_is; }

TEST(WallClock, of_a_clock_that_nobody_sets_follows_how_fast_it_runs) {
  now_is = {100 * kSecond, 5000 * kSecond};
  WallClock clock(&read_ours);
  for (int second = 101; second < 200; ++second) {
    now_is.event_clock = static_cast<std::uint64_t>(second * kSecond);
    now_is.wall_offset += 500'000;  // 500 ppm, the most that adjtimex(2) does
    const std::int64_t offset = clock.offset_at(now_is.event_clock - 1000);
    EXPECT_LE(std::abs(offset - now_is.wall_offset), 500'000) << second;
  }
}

TEST(WallClock, what_happened_before_it_was_set_has_the_time_of_day_from_before) {
  now_is = {100 * kSecond, 5000 * kSecond};
  WallClock clock(&read_ours);
  now_is.event_clock = 110 * kSecond;
  EXPECT_EQ(clock.offset_at(109 * kSecond), 5000 * kSecond);
  now_is = {120 * kSecond, 1400 * kSecond};  // an hour back
  EXPECT_EQ(clock.offset_at(119 * kSecond), 1400 * kSecond);
  EXPECT_EQ(clock.offset_at(105 * kSecond), 5000 * kSecond) << "an event that was read late";
  now_is = {130 * kSecond, 9999 * kSecond};
  EXPECT_EQ(clock.offset_at(129 * kSecond), 9999 * kSecond);
  EXPECT_EQ(clock.offset_at(125 * kSecond), 1400 * kSecond);
  EXPECT_EQ(clock.offset_at(50 * kSecond), 5000 * kSecond) << "before all";
}

TEST(WallClock, remembers_no_more_than_it_has_room_for) {
  now_is = {kSecond, 0};
  WallClock clock(&read_ours);
  for (int second = 2; second < 1000; ++second) {
    now_is = {static_cast<std::uint64_t>(second * kSecond), second * kSecond};
    EXPECT_EQ(clock.offset_at(now_is.event_clock), now_is.wall_offset);
  }
  EXPECT_GT(clock.offset_at(0), 0) << "the oldest it knows";
}

TEST(EventClock, is_the_monotonic_clock_where_there_is_no_other_time_namespace) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t before = now.tv_sec * kSecond + now.tv_nsec;
  const auto ours = static_cast<std::int64_t>(event_clock());
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  EXPECT_GE(ours, before);
  EXPECT_LE(ours, now.tv_sec * kSecond + now.tv_nsec);
  ::clock_gettime(CLOCK_REALTIME, &now);
  const ClockReading reading = read_clocks();
  const std::int64_t wall = static_cast<std::int64_t>(reading.event_clock) + reading.wall_offset;
  EXPECT_LT(std::abs(wall - (now.tv_sec * kSecond + now.tv_nsec)), kSecond);
}

}  // namespace
}  // namespace usdt
