// SPDX-License-Identifier: BSD-2-Clause
// Tracer in the hands of an application: callbacks that misbehave, waiting, waking. This process passes its own probes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "probed.hpp"
#include "usdt/usdt.hpp"

namespace usdt {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::ElementsAre;

class TracerInUse : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
  }

  static AttachPlan plan() {
    auto selection = select({*ProbePattern::parse("own:typed")}, {.targets = {}, .pids = {::getpid()}, .program = {}});
    EXPECT_TRUE(selection) << selection.error().message;
    PlanOptions options;
    options.scope = *OneProcess::of(::getpid());
    auto made = plan_attach(*selection, kernel_facts(), options);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  /// Of a plan that nobody else keeps.
  static Tracer start(const TraceOptions& options = {}) {
    auto tracer = Tracer::start(plan(), options);
    if (!tracer) throw std::runtime_error(tracer.error().message);
    return std::move(*tracer);
  }
  static void pass(int count) {
    for (int i = 0; i < count; ++i) probed::typed("text", i, 1);
  }
  static Tracer::Callback into(std::vector<int>& numbers) {
    return [&numbers](const Event& event) { numbers.push_back(event.arg<int>(1).value_or(-1)); };
  }
};

TEST_F(TracerInUse, hands_over_each_event_once_though_a_callback_throws) {
  Tracer tracer = start();
  pass(5);
  std::vector<int> seen;
  const Tracer::Callback picky = [&](const Event& event) {
    const int number = *event.arg<int>(1);
    if (number == 2) throw std::runtime_error("not this one");
    seen.push_back(number);
  };
  EXPECT_THROW((void)tracer.poll(picky, 1s), std::runtime_error);
  EXPECT_THAT(seen, ElementsAre(0, 1));
  EXPECT_EQ(tracer.poll(picky, 1s).value_or(0), 2U);
  EXPECT_THAT(seen, ElementsAre(0, 1, 3, 4));
  tracer.detach();
  tracer.drain(picky);
  const ProbeCounts counts = tracer.counts().front();
  EXPECT_EQ(counts.hits, 5U);
  EXPECT_EQ(counts.delivered, 4U);
  EXPECT_EQ(counts.discarded, 1U);
}

/// How many ring buffers this process has, however many descriptors of each.
std::size_t rings_of_this_process() {
  std::set<std::string> rings;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    const std::string text((std::istreambuf_iterator<char>(info)), {});
    const std::size_t number = text.find("map_id:");
    if (text.find("map_type:\t27\n") != text.npos && number != text.npos)
      rings.insert(text.substr(number, text.find('\n', number) - number));
  }
  return rings.size();
}

TEST_F(TracerInUse, takes_the_ring_that_was_made_ahead) {
  TraceOptions options;
  options.ring_bytes = 1 << 20;
  options.ring = std::make_shared<EventRing>(options.ring_bytes);
  std::vector<int> seen;
  {
    Tracer tracer = start(options);
    pass(3);
    EXPECT_EQ(tracer.poll(into(seen), 1s).value_or(0), 3U);
    EXPECT_THAT(seen, ElementsAre(0, 1, 2));
    EXPECT_EQ(rings_of_this_process(), 1U);
    pass(2);  // records that nobody takes
  }
  EXPECT_EQ(rings_of_this_process(), 0U);
  seen.clear();
  Tracer second = start(options);
  pass(1);
  EXPECT_EQ(second.poll(into(seen), 1s).value_or(0), 1U);
  EXPECT_THAT(seen, ElementsAre(0)) << "a second trace has a ring of its own";
}

TEST_F(TracerInUse, leaves_a_ring_of_another_size_to_others) {
  TraceOptions options;
  options.ring = std::make_shared<EventRing>(1 << 20);
  std::vector<int> seen;
  Tracer tracer = start(options);
  pass(1);
  EXPECT_EQ(tracer.poll(into(seen), 1s).value_or(0), 1U);
  options.ring.reset();
  EXPECT_EQ(rings_of_this_process(), 1U) << "the tracer's own";
}

TEST_F(TracerInUse, refuses_to_be_polled_by_its_own_callback) {
  Tracer tracer = start();
  pass(2);
  std::vector<int> seen;
  std::vector<ErrorKind> refused;
  const auto handed = tracer.poll(
      [&](const Event& event) {
        refused.push_back(tracer.poll(into(seen), 0ms).error().kind);
        seen.push_back(*event.arg<int>(1));
      },
      1s);
  EXPECT_EQ(handed.value_or(0), 2U);
  EXPECT_THAT(seen, ElementsAre(0, 1));
  EXPECT_THAT(refused, ElementsAre(ErrorKind::invalid_argument, ErrorKind::invalid_argument));
}

TEST_F(TracerInUse, waits_as_long_as_it_was_told_also_soon_after_an_event) {
  Tracer tracer = start();
  std::vector<int> seen;
  pass(1);
  ASSERT_EQ(tracer.poll(into(seen), 1s).value_or(0), 1U);
  for (int i = 0; i < 3; ++i) {
    const auto before = Clock::now();
    EXPECT_EQ(tracer.poll(into(seen), 100ms).value_or(1), 0U);
    EXPECT_GE(Clock::now() - before, 100ms);
  }
}

TEST_F(TracerInUse, is_woken_by_another_thread_by_an_event_and_by_a_wake_before_it_waits) {
  Tracer tracer = start();
  std::vector<int> seen;
  const auto before = Clock::now();
  {
    const std::jthread waker([&] {
      std::this_thread::sleep_for(50ms);
      tracer.wake();
    });
    EXPECT_EQ(tracer.poll(into(seen), 60s).value_or(1), 0U);
  }
  {
    const std::jthread passer([] {
      std::this_thread::sleep_for(50ms);
      pass(1);
    });
    EXPECT_EQ(tracer.poll(into(seen), 60s).value_or(0), 1U);
  }
  tracer.wake();
  EXPECT_EQ(tracer.poll(into(seen), 60s).value_or(1), 0U);
  EXPECT_LT(Clock::now() - before, 30s);
}

TEST_F(TracerInUse, keeps_a_plan_of_its_own) {
  const Tracer tracer = start();
  const auto where_a_plan_was = std::make_unique<AttachPlan>();  // what is free now is taken
  ASSERT_EQ(tracer.plan().probes.size(), 1U);
  EXPECT_EQ(tracer.plan().probes.front().name, "typed");
  EXPECT_EQ(Tracer::start(std::shared_ptr<const AttachPlan>()).error().kind, ErrorKind::invalid_argument);
}

TEST_F(TracerInUse, ends_a_whole_trace_as_soon_as_it_is_asked_to_stop) {
  std::stop_source stop;
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(100ms);
    pass(3);
    stop.request_stop();
  });
  std::vector<int> seen;
  const auto counts = trace(plan(), stop.get_token(), into(seen));
  ASSERT_TRUE(counts) << counts.error().message;
  EXPECT_EQ(counts->front().hits, counts->front().delivered);
}

}  // namespace
}  // namespace usdt
