// SPDX-License-Identifier: BSD-2-Clause
#include "event/trace_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "usdt/testing/event_builder.hpp"

namespace usdt::event {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kRing = 4096;

AttachPlan plan_with_text() { return testing::synthetic_plan("p", "n", Machine::x86_64, "8@%rdi 8@%rsi", {0, 1}); }

/// What is said against the options, which cannot be meant.
std::string refusal(const AttachPlan& plan, const TraceOptions& options) {
  const auto layout = layout_for(plan, options, kRing);
  if (layout) return "they are taken";
  EXPECT_EQ(layout.error().kind, ErrorKind::invalid_argument);
  return layout.error().message;
}

TEST(TraceOptions, that_fit_give_the_layout_of_records) {
  TraceOptions options;
  options.string_size = 100;
  const auto layout = layout_for(plan_with_text(), options, kRing);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(layout->string_size, 102U);
  EXPECT_EQ(layout->string_slots, 2U);
  EXPECT_EQ(layout->max_args, 2U);
}

TEST(TraceOptions, ask_for_no_record_that_the_ring_cannot_hold) {
  TraceOptions options;
  std::uint32_t longest = 0;
  for (options.string_size = 1; layout_for(plan_with_text(), options, kRing); ++options.string_size)
    longest = options.string_size;
  // BPF_RINGBUF_HDR_SZ is 8; bpf_ringbuf_reserve() wants the record and it within the ring.
  EventLayout layout = *layout_for(plan_with_text(), {.string_size = longest}, kRing);
  EXPECT_LE(layout.record_size() + 8, kRing);
  layout.string_size += 8;
  EXPECT_GT(layout.record_size() + 8, kRing);
  EXPECT_THAT(refusal(plan_with_text(), {.string_size = longest + 8}),
              HasSubstr("a ring of 4096 bytes holds no event"));
  EXPECT_THAT(refusal(plan_with_text(), {.string_size = 0x7fffffff}),
              HasSubstr("ask for shorter ones, or a larger ring"));
  EXPECT_THAT(refusal(plan_with_text(), {.string_size = 0xffffffff}), HasSubstr("holds no event"));
  EXPECT_TRUE(layout_for(plan_with_text(), {.string_size = 0x7fffffff, .count_only = true}, kRing));
}

TEST(TraceOptions, that_mean_nothing_are_refused_each_with_its_reason) {
  const AttachPlan plan = plan_with_text();
  EXPECT_THAT(refusal(plan, {.backend = Backend::kprobe_multi}), HasSubstr("it attaches to kernel functions"));
  EXPECT_THAT(refusal(plan, {.string_size = 0}), HasSubstr("strings of 0 bytes"));
  EXPECT_THAT(refusal(plan, {.kernel_stack_depth = 4}), HasSubstr("has no stack there"));
  EXPECT_THAT(refusal(plan, {.user_stack_depth = 513}), HasSubstr("stacks of 513 frames: at most 512"));
  EXPECT_THAT(refusal(plan, {.user_stack_depth = 128, .user_stack_method = StackMethod::frame_pointers}),
              HasSubstr("stacks of 128 frames: at most 127"));
  for (const std::uint32_t bytes : {0U, 1000U, 4096U + 1, 65536U + 4096})
    EXPECT_THAT(refusal(plan, {.user_stack_depth = 4, .user_stack_bytes = bytes}), HasSubstr("bytes of stacks"));
  EXPECT_THAT(refusal(plan, {.kernel_stack_depth = 128}), HasSubstr("at most 127"));
  EXPECT_THAT(refusal(plan, {.descendants_only = true, .family_of = *OneProcess::of(1)}), HasSubstr("one of them"));
  EXPECT_THAT(refusal(plan, {.sample = 0}), HasSubstr("a sample of one in 0"));
  EXPECT_THAT(refusal(plan, {.sample = 1'000'001}), HasSubstr("one in 1 to 1000000"));
  EXPECT_THAT(refusal(plan, {.count_only = true, .sample = 2}), HasSubstr("each is counted"));
  EXPECT_THAT(refusal(plan, {.max_rate = 10'000'001}), HasSubstr("the most that can be asked for"));
  EXPECT_THAT(refusal(plan, {.count_only = true, .max_rate = 1}), HasSubstr("are no events"));
  AttachPlan one = plan_with_text();
  one.scope = *OneProcess::of(1);
  EXPECT_THAT(refusal(one, {.family_of = *OneProcess::of(1)}), HasSubstr("one process alone"));
}

}  // namespace
}  // namespace usdt::event
