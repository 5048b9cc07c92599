// SPDX-License-Identifier: BSD-2-Clause
// Planning without privilege, of a file that the test itself is.
#include "usdt/question_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace usdt {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A question about functions of this program.
Question question_about(const std::vector<std::string>& points) {
  Question question;
  question.option_prefix = "--";
  question.points = *parse_points(points);
  complete_question(question);
  return question;
}

/// Plans what nobody attaches.
QuestionPlanner planner_of(Question question, Subjects subjects = {}) {
  return {std::move(question), std::move(subjects), QuestionPlanner::Purpose::explain};
}

extern "C" [[gnu::noinline]] int planned_here(int number) {
  asm volatile("");
  return number + 1;
}

const std::string kHere = "uprobe:/proc/self/exe:planned_here";

TEST(QuestionPlanner, plans_what_a_question_names_without_privilege) {
  ASSERT_EQ(planned_here(1), 2);
  QuestionPlanner planner = planner_of(question_about({kHere}));
  const auto planned = planner.plan();
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->plan.probes.size(), 1U);
  EXPECT_EQ(planned->printed.of_probe.size(), 1U);
}

TEST(QuestionPlanner, fails_where_nothing_is_what_a_question_names) {
  QuestionPlanner planner = planner_of(question_about({"uprobe:/proc/self/exe:planned_nowhere"}));
  EXPECT_EQ(planner.plan().error().kind, ErrorKind::not_found);
}

TEST(QuestionPlanner, says_of_a_pattern_beside_others_that_it_means_nothing) {
  QuestionPlanner planner = planner_of(question_about({kHere, "uprobe:/proc/self/exe:planned_nowhere*"}));
  ASSERT_TRUE(planner.plan());
  const auto notices = planner.take_notices();
  ASSERT_FALSE(notices.empty());
  EXPECT_EQ(notices.front().kind, SessionNotice::Kind::unmatched);
  EXPECT_THAT(notices.front().text, HasSubstr("planned_nowhere*"));
  EXPECT_THAT(planner.take_notices(), IsEmpty()) << "each is given once";
}

TEST(QuestionPlanner, refuses_lists_of_what_is_not_there_in_the_words_of_who_asks) {
  Question question = question_about({kHere});
  question.values.print = *parse_prints({"other:probe=arg0"});
  EXPECT_THAT(planner_of(question).plan().error().message, HasSubstr("--print 'other:probe=...' is for no probe"));
  question.values.print = *parse_prints({"duration"});
  EXPECT_THAT(planner_of(question).plan().error().message, HasSubstr("--print duration: only calls"));
}

TEST(QuestionPlanner, compares_durations_of_what_has_some) {
  Question question = question_about({kHere});
  question.view = *parse_view({.slowest = 3});
  EXPECT_THAT(planner_of(question).plan().error().message, HasSubstr("--slowest"));
  question.points = *parse_points({"ucall:/proc/self/exe:planned_here"});
  EXPECT_TRUE(planner_of(question).plan());
}

TEST(QuestionPlanner, makes_spans_of_both_sides_of_one_file_that_comes) {
  QuestionPlanner planner = planner_of(question_about({kHere + " ~~ uretprobe:/proc/self/exe:planned_here"}));
  const auto found = planner.find();
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_FALSE(found->lacks_something());
  FoundPoints empty{.ends = Selection()};
  EXPECT_TRUE(empty.lacks_something());
  planner.add_file(found->selection.files.front(), empty);
  EXPECT_TRUE(empty.lacks_something()) << "it has no end";
  planner.add_file(found->ends->files.front(), empty);
  EXPECT_FALSE(empty.lacks_something());
}

}  // namespace
}  // namespace usdt
