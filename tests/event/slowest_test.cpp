// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/slowest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include "usdt/testing/event_builder.hpp"

namespace usdt {
namespace {

using ::testing::ElementsAre;
using testing::EventBuilder;
using testing::layout_of;

/// What a call took, when it began, and in which thread.
using Call = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;

class Slowest : public ::testing::Test {
 protected:
  bool add(SlowestEvents& to, std::uint64_t duration, std::uint64_t at = 1, std::uint32_t tid = 1) {
    const auto record = *EventBuilder(plan_).pid(1).tid(tid).timestamp(at).duration(duration).arg(0, duration).build();
    const auto event = Event::from(record, plan_, layout_of(plan_));
    return to.add(*event);
  }

  static std::vector<Call> calls(const SlowestEvents& slowest) {
    std::vector<Call> all;
    for (const KeptEvent& kept : slowest.events())
      all.emplace_back(kept.event->duration(), kept.event->timestamp(), kept.event->tid());
    return all;
  }

  const AttachPlan plan_ = testing::synthetic_plan("p", "n", Machine::x86_64, "8@%rdi");
};

TEST_F(Slowest, are_as_many_as_are_wanted_the_slowest_first) {
  SlowestEvents slowest(2);
  EXPECT_TRUE(add(slowest, 5));
  EXPECT_TRUE(add(slowest, 3));
  EXPECT_FALSE(add(slowest, 2));
  EXPECT_TRUE(add(slowest, 9));
  EXPECT_THAT(calls(slowest), ElementsAre(Call{9, 1, 1}, Call{5, 1, 1}));
  EXPECT_EQ(std::get<std::uint64_t>(slowest.events().begin()->event->value(0)), 9U);  // the record is a copy
}

TEST_F(Slowest, leave_nothing_out_while_there_is_room) {
  SlowestEvents slowest(3);
  EXPECT_EQ(slowest.least().count(), 0);
  add(slowest, 500);
  add(slowest, 400);
  EXPECT_EQ(slowest.least().count(), 0);
  add(slowest, 300);
  EXPECT_EQ(slowest.least().count(), 300);
  add(slowest, 450);
  EXPECT_EQ(slowest.least().count(), 400);
}

TEST_F(Slowest, of_those_that_took_equally_long_are_the_first) {
  SlowestEvents slowest(2);
  add(slowest, 7, 30);
  add(slowest, 7, 20, 2);
  EXPECT_FALSE(add(slowest, 7, 40));
  EXPECT_TRUE(add(slowest, 7, 10));
  EXPECT_TRUE(add(slowest, 7, 20, 1));
  EXPECT_THAT(calls(slowest), ElementsAre(Call{7, 10, 1}, Call{7, 20, 1}));
}

TEST_F(Slowest, are_none_of_which_none_are_wanted) {
  SlowestEvents slowest(0);
  EXPECT_FALSE(add(slowest, UINT64_MAX));
  EXPECT_TRUE(slowest.events().empty());
  EXPECT_EQ(slowest.least().count(), 0);
}

TEST_F(Slowest, are_those_that_sorting_all_would_find) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same each time
  for (const std::size_t most : {1U, 5U, 100U, 2000U}) {
    SlowestEvents slowest(most);
    std::vector<Call> all;
    for (int n = 0; n < 1000; ++n) {
      all.emplace_back(random() % 50, random() % 50, random() % 50);
      const auto& [duration, at, tid] = all.back();
      add(slowest, duration, at, tid);
    }
    std::ranges::sort(all, [](const Call& a, const Call& b) {
      return std::get<0>(a) != std::get<0>(b) ? std::get<0>(a) > std::get<0>(b) : a < b;
    });
    all.resize(std::min(all.size(), most));
    EXPECT_EQ(calls(slowest), all) << most;
  }
}

}  // namespace
}  // namespace usdt
