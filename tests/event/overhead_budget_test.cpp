// SPDX-License-Identifier: BSD-2-Clause
#include "event/overhead_budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "event/stretches.hpp"

namespace usdt::event {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// A program that calculates, with so many hits for each second of work, and a kernel that takes its time to switch.
class Simulation {
 public:
  double hits_per_second = 0;   ///< of work
  double cost_of_hit = 1.2e-6;  ///< seconds
  nanoseconds attaching = milliseconds(30), detaching = milliseconds(90);
  std::function<double(double)> load = [](double) { return 1.0; };  ///< share of its time that it works, by time

  explicit Simulation(double share) : budget_(share, reading_) {}

  void run(nanoseconds time) {
    const nanoseconds end = reading_.now + time;
    while (reading_.now < end) {
      pass(milliseconds(10), attached_);
      if (budget_.wants_attached(reading_) == attached_) continue;
      // Breakpoints are there when they were put, and until they were taken out, in the middle.
      const nanoseconds took = attached_ ? detaching : attaching;
      pass(took / 2, attached_);
      pass(took / 2, !attached_);
      attached_ = !attached_;
      ++switches;
      budget_.switched(reading_, attached_, took);
    }
  }
  [[nodiscard]] double overhead() const { return reading_.cost / reading_.work; }
  [[nodiscard]] const OverheadReading& reading() const { return reading_; }
  [[nodiscard]] bool attached() const { return attached_; }

  int switches = 0;
  double attached_time = 0;

 private:
  void pass(nanoseconds time, bool attached) {
    const double passed = static_cast<double>(time.count());
    const double busy = passed * load(static_cast<double>(reading_.now.count()) / 1e9);
    const double price = attached ? hits_per_second * cost_of_hit : 0;  // for each second of work
    reading_.now += time;
    reading_.work += busy / (1 + price);
    reading_.cost += busy * price / (1 + price);
    if (attached) attached_time += passed;
  }

  OverheadReading reading_;
  OverheadBudget budget_;
  bool attached_ = true;
};

TEST(OverheadBudget, leaves_alone_who_costs_less_than_allowed) {
  Simulation run(0.05);
  run.hits_per_second = 40'000;  // 4.8 %
  run.run(seconds(30));
  EXPECT_EQ(run.switches, 0);
  EXPECT_NEAR(run.overhead(), 0.048, 0.0001);
}

TEST(OverheadBudget, is_kept_at_every_rate) {
  for (const double share : {0.01, 0.05, 0.2, 1.0}) {
    for (const double rate : {1e3, 1e4, 5e4, 1e5, 3e5, 1e6, 5e6}) {
      Simulation run(share);
      run.hits_per_second = rate;
      run.run(seconds(120));
      const double unlimited = rate * run.cost_of_hit;
      // Of all that is allowed, a last window may not be paid for yet.
      EXPECT_LE(run.overhead(), share * 1.2) << share << " of " << rate;
      EXPECT_GE(run.overhead(), std::min(share * 0.8, unlimited * 0.999)) << share << " of " << rate;
    }
  }
}

TEST(OverheadBudget, has_windows_of_a_length_that_switching_is_worth) {
  Simulation run(0.05);
  run.hits_per_second = 1e6;
  run.run(seconds(60));
  EXPECT_GT(run.switches, 20);
  EXPECT_LT(run.switches, 120);
}

TEST(OverheadBudget, follows_a_program_that_changes) {
  Simulation run(0.05);
  run.hits_per_second = 1e6;
  run.run(seconds(30));
  run.hits_per_second = 1e3;  // 0.12 %
  run.run(seconds(20));
  const int calm = run.switches;
  run.run(seconds(30));
  EXPECT_EQ(run.switches, calm) << "nothing to save";
  EXPECT_TRUE(run.attached());
  const OverheadReading before = run.reading();
  run.hits_per_second = 1e6;
  run.run(seconds(30));
  EXPECT_GT(run.switches, calm);
  const double since = (run.reading().cost - before.cost) / (run.reading().work - before.work);
  EXPECT_NEAR(since, 0.05, 0.01) << "thrift is not saved up for long";
}

TEST(OverheadBudget, is_a_share_of_what_is_done_not_of_time) {
  Simulation run(0.05);
  run.hits_per_second = 1e6;
  run.load = [](double) { return 0.1; };
  run.run(seconds(120));
  EXPECT_NEAR(run.overhead(), 0.05, 0.01);
}

TEST(OverheadBudget, looks_again_at_who_did_nothing_for_long) {
  Simulation run(0.01);
  run.hits_per_second = 5e6;
  run.load = [](double second) { return second < 5 ? 1.0 : 0.02; };
  run.run(seconds(5));
  const int busy = run.switches;
  run.run(seconds(600));
  EXPECT_GT(run.switches, busy);
  EXPECT_LE(run.overhead(), 0.012);
}

TEST(OverheadBudget, does_not_take_a_first_moment_for_the_rest) {
  const OverheadReading begin;
  OverheadBudget budget(0.01, begin);
  EXPECT_TRUE(budget.wants_attached({milliseconds(1), 0, 5000}));
}

TEST(Stretch, tells_of_what_was_not_seen_by_what_was) {
  EXPECT_EQ((Stretch{.unseen = 0, .seen = 5}.weight()), 1);
  EXPECT_EQ((Stretch{.unseen = 15, .seen = 5}.weight()), 4);
  EXPECT_EQ((Stretch{.unseen = 15, .seen = 0}.weight()), 1) << "there is nothing to tell by";
}

TEST(Stretch, that_has_only_begun_is_weighed_with_the_one_before) {
  const Stretch last{.unseen = 90, .seen = 10};
  const StretchWeights early(last, {.unseen = 99, .seen = 1});
  EXPECT_EQ(early.before, early.now);
  EXPECT_NEAR(early.now, 200.0 / 11, 1e-9);
  const StretchWeights later(last, {.unseen = 60, .seen = 20});
  EXPECT_EQ(later.before, 10);
  EXPECT_EQ(later.now, 4);
}

}  // namespace
}  // namespace usdt::event
