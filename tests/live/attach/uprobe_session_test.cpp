// SPDX-License-Identifier: BSD-2-Clause
// One program at both ends of the calls of a function in a file (Backend::uprobe_session).
#include <gmock/gmock.h>

#include "calls_of_function.hpp"

namespace usdt::calls {
namespace {

class UprobeSession : public Calls {
 protected:
  void SetUp() override {
    Calls::SetUp();
    if (probe_feature(Feature::uprobe_session).answer == Answer::no) GTEST_SKIP() << "no sessions on this kernel";
  }
};

TEST_F(UprobeSession, tells_the_ends_of_a_call_apart_and_what_is_known_at_each) {
  auto object = load(Moment::both);
  ASSERT_TRUE(object) << object.error().message;
  auto link = object->attach();
  ASSERT_TRUE(link) << link.error().message;
  EXPECT_EQ(link->backend_text(), "uprobe_session");
  EXPECT_EQ(link->attached(), 1U);
  const long returned = twice_and_one(500);
  const Seen at_entry = seen(*object, "at_entry");
  EXPECT_EQ(at_entry.hits, 1U);
  EXPECT_EQ(at_entry.errors[0], 0);
  EXPECT_EQ(at_entry.values[0], 500U);
  EXPECT_EQ(at_entry.errors[1], -ENODATA) << "no return value yet";
  const Seen at_return = seen(*object, "at_return");
  EXPECT_EQ(at_return.hits, 1U);
  EXPECT_EQ(at_return.errors[0], -ENODATA) << "its register holds something else by now";
  EXPECT_EQ(at_return.errors[1], 0);
  EXPECT_EQ(static_cast<long>(at_return.values[1]), returned);
  EXPECT_EQ(at_return.cookie, 77U);
}

TEST_F(UprobeSession, is_one_event_of_the_stock_program_with_argument_return_value_and_duration) {
  auto tracer = Tracer::start(plan(Moment::both));
  ASSERT_TRUE(tracer) << tracer.error().message;
  const long returned = twice_and_one(-9);
  std::size_t events = 0;
  const auto look = [&](const Event& event) {
    ++events;
    ASSERT_EQ(event.arg_count(), 2U);
    EXPECT_EQ(std::get<std::int64_t>(event.value(0)), -9);
    EXPECT_TRUE(event.arg_info(1).result);
    EXPECT_EQ(static_cast<long>(std::get<std::int64_t>(event.value(1))), returned);
    EXPECT_GT(event.duration(), 0U);
  };
  EXPECT_TRUE(tracer->poll(look, std::chrono::seconds(5)));
  EXPECT_EQ(events, 1U);
  const ProbeCounts counts = tracer->counts().at(0);
  EXPECT_EQ(counts.hits, 1U);
  EXPECT_EQ(counts.unfinished, 0U);
}

}  // namespace
}  // namespace usdt::calls
