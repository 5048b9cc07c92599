// SPDX-License-Identifier: BSD-2-Clause
// Conditions are split into what the kernel answers and what is asked of events.
#include "session/split_condition.hpp"

#include <gtest/gtest.h>

#include <string>

namespace usdt::session {
namespace {

std::shared_ptr<const Expression> condition(const std::string& text) {
  auto parsed = parse_expression(text);
  EXPECT_TRUE(parsed) << text << ": " << parsed.error().message;
  return parsed ? std::make_shared<const Expression>(std::move(*parsed)) : nullptr;
}

/// The places of the operands of "&&", in their order.
std::string columns(const ExpressionNode& node) {
  if (node.op != Operator::logical_and) return std::to_string(node.column);
  return columns(node.of[0]) + " " + columns(node.of[1]);
}

TEST(SplitCondition, gives_the_kernel_what_it_can_answer_wherever_that_stands) {
  const auto whole =
      condition(R"(trace_attribute("a") == "b" && pid == 1 && ("c" == trace_attribute("d") && tid > 2) && 1)");
  const SplitCondition split = split_condition(whole);
  ASSERT_TRUE(split.of_hits && split.of_events);
  EXPECT_EQ(columns(split.of_hits->root), "31 75 87");
  EXPECT_EQ(columns(split.of_events->root), "16 44");
}

TEST(SplitCondition, asks_events_for_all_of_what_is_no_conjunction) {
  for (const char* text : {R"(trace_attribute("a") == "b" || pid == 1)",
                           R"(!(pid == 1 && trace_attribute("a") == "b"))", R"(trace_attribute("a") in {"b", "c"})"}) {
    const auto whole = condition(text);
    const SplitCondition split = split_condition(whole);
    EXPECT_FALSE(split.of_hits) << text;
    ASSERT_TRUE(split.of_events) << text;
    EXPECT_EQ(columns(split.of_events->root), columns(whole->root)) << text;
  }
}

TEST(SplitCondition, leaves_other_conditions_to_the_kernel_as_they_are) {
  const auto whole = condition("pid == 1 && arg0 > 2");
  const SplitCondition split = split_condition(whole);
  EXPECT_EQ(split.of_hits, whole);
  EXPECT_FALSE(split.of_events);
  EXPECT_FALSE(split_condition(nullptr).of_hits);
}

}  // namespace
}  // namespace usdt::session
