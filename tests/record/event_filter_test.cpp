// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/event_filter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "usdt/testing/event_builder.hpp"

namespace usdt {
namespace {

using testing::EventBuilder;
using ::testing::HasSubstr;
using testing::synthetic_plan;

constexpr std::uint32_t kTextSize = 8;

Result<EventFilter> filter(std::string_view question, const AttachPlan& plan) {
  return EventFilter::make(std::make_shared<const Expression>(*parse_expression(question)), plan);
}

/// "yes", "no", "unknown", or why it cannot be asked.
std::string answer(std::string_view question, const AttachPlan& plan, const EventBuilder& event) {
  auto asked = filter(question, plan);
  if (!asked) return asked.error().message;
  const auto record = *event.build();
  const auto holds = (*asked)(*Event::from(record, plan, testing::layout_of(plan, kTextSize)));
  return !holds ? "unknown" : *holds ? "yes" : "no";
}

TEST(EventFilter, answers_of_numbers_by_their_own_sign_and_width) {
  const AttachPlan plan = synthetic_plan("p", "n", Machine::x86_64, "-4@%edi 8@%rsi 8f@%rdx");
  const auto event = EventBuilder(plan, kTextSize).arg(0, -7).arg(1, UINT64_MAX).arg(2, 0.25).pid(42).comm("me");
  EXPECT_EQ(answer("arg0 == -7", plan, event), "yes");
  EXPECT_EQ(answer("arg0 < arg1", plan, event), "yes");
  EXPECT_EQ(answer("arg2 > 0.2 && arg2 < 0.3", plan, event), "yes");
  EXPECT_EQ(answer("pid == 42 && comm == \"me\"", plan, event), "yes");
  EXPECT_EQ(answer("arg1 in {1, 2}", plan, event), "no");
  EXPECT_EQ(answer("1 / (arg0 + 7) == 1", plan, event), "unknown");
}

TEST(EventFilter, has_no_answer_where_an_argument_was_not_read) {
  const AttachPlan plan = synthetic_plan("p", "n", Machine::x86_64, "-4@%edi 8@8(%rsi)");
  const auto event = EventBuilder(plan, kTextSize).arg(0, 1).error(1, -14);
  EXPECT_EQ(answer("arg1 == 0", plan, event), "unknown");
  EXPECT_EQ(answer("arg0 == 1 || arg1 == 0", plan, event), "yes");
}

TEST(EventFilter, compares_texts_as_far_as_they_were_captured) {
  const AttachPlan plan = synthetic_plan("p", "n", Machine::x86_64, "8@%rdi", {0});
  const auto text = [&](std::string_view bytes) { return EventBuilder(plan, kTextSize).arg(0, 1ULL).text(0, bytes); };
  EXPECT_EQ(answer("str(arg0) == \"short\"", plan, text("short")), "yes");
  EXPECT_EQ(answer("str(arg0) == \"shor\"", plan, text("short")), "no");
  EXPECT_EQ(answer("arg0 =~ \"longer*\"", plan, text("longer text")), "yes");
  EXPECT_EQ(answer("arg0 =~ \"long*\"", plan, text("longer text")), "yes");
  EXPECT_EQ(answer("arg0 =~ \"longer text*\"", plan, text("longer text")), "unknown") << "eight bytes are known";
  EXPECT_EQ(answer("str(arg0) == \"other\"", plan, text("longer text")), "no");
}

TEST(EventFilter, compares_what_may_be_text_whatever_it_looks_like) {
  AttachPlan plan = synthetic_plan("p", "n", Machine::x86_64, "8@%rdi", {0});
  plan.specs[0].args[0].capture = USDT_CAPTURE_LIKELY;
  EXPECT_EQ(answer("arg0 == \"ab\"", plan, EventBuilder(plan, kTextSize).arg(0, 1ULL).text(0, "ab")), "yes");
}

TEST(EventFilter, says_what_no_event_has) {
  const AttachPlan plan = synthetic_plan("p", "n", Machine::x86_64, "8@%rdi");
  EXPECT_THAT(filter("uid == 0", plan).error().message, HasSubstr("uid: it was not recorded"));
  EXPECT_THAT(filter("duration > 1ms", plan).error().message, HasSubstr("only calls have one"));
  EXPECT_THAT(filter("arg7 == 1", plan).error().message, HasSubstr("arg7: there is no such argument"));
  EXPECT_THAT(filter("arg0->port == 1", plan).error().message, HasSubstr("not among what was recorded"));
}

TEST(EventFilter, asks_whose_a_process_was_where_events_say_it) {
  AttachPlan plan = synthetic_plan("p", "n", Machine::x86_64, "8@%rdi");
  plan.owners = true;
  const auto event =
      EventBuilder(plan, kTextSize).owner({.uid = 1000, .gid = UINT32_MAX, .cgroup = 1ULL << 40, .ppid = 7});
  EXPECT_EQ(answer("uid == 1000 && gid == 0xffffffff && cgroup == 1 << 40 && ppid == 7", plan, event), "yes");
  EXPECT_EQ(answer("uid == 0 || gid == 0 || cgroup == 0 || ppid == 1", plan, event), "no");
  EXPECT_EQ(answer("ppid != 7", plan, EventBuilder(plan, kTextSize).owner({.uid = 1000})), "unknown");
}

TEST(EventFilter, asks_calls_for_their_duration_and_end) {
  AttachPlan plan = synthetic_plan("p", "n", Machine::x86_64, "8@%rdi");
  plan.groups[0].moment = Moment::both;
  auto record = *EventBuilder(plan, kTextSize).timestamp(1000).build();
  reinterpret_cast<usdt_event*>(record.data())->duration = 50;
  const auto event = Event::from(record, plan, testing::layout_of(plan, kTextSize));
  EXPECT_EQ(filter("duration == 50ns && nsecs == 1050", plan).value()(*event), true);
}

}  // namespace
}  // namespace usdt
