// SPDX-License-Identifier: BSD-2-Clause
#include "event/look_budget.hpp"

#include <gtest/gtest.h>

namespace usdt::event {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000, kSecond = 1000 * kMillisecond;

TEST(LookBudget, is_a_second_at_first) {
  LookBudget budget(kSecond);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(budget.has_time(kSecond)) << i;
    budget.spend(100 * kMillisecond);
  }
  EXPECT_FALSE(budget.has_time(kSecond));
}

TEST(LookBudget, is_a_fifth_of_the_time_from_then_on) {
  LookBudget budget(0);
  budget.spend(kSecond);
  std::uint64_t spent = 0, now = 0;
  for (const std::uint64_t end = 100 * kSecond; now < end; now += kMillisecond)
    if (budget.has_time(now)) {
      budget.spend(7 * kMillisecond);
      spent += 7 * kMillisecond;
      now += 7 * kMillisecond;
    }
  EXPECT_NEAR(static_cast<double>(spent), 20.0 * kSecond, 0.01 * kSecond);
}

TEST(LookBudget, is_not_saved_for_later) {
  LookBudget budget(0);
  EXPECT_TRUE(budget.has_time(1'000'000 * kSecond));
  budget.spend(kSecond);
  EXPECT_FALSE(budget.has_time(1'000'000 * kSecond));
}

TEST(LookBudget, what_took_longer_is_paid_for) {
  LookBudget budget(0);
  budget.spend(3 * kSecond);
  EXPECT_FALSE(budget.has_time(10 * kSecond));
  EXPECT_TRUE(budget.has_time(10 * kSecond + 10));
}

TEST(LookBudget, a_clock_that_goes_back_gives_nothing) {
  LookBudget budget(10 * kSecond);
  budget.spend(kSecond);
  EXPECT_FALSE(budget.has_time(5 * kSecond));
  EXPECT_FALSE(budget.has_time(10 * kSecond));
}

}  // namespace
}  // namespace usdt::event
