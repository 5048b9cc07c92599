// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/question.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace usdt {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(SplitSpans, finds_where_spans_begin_and_end_in_one_word_or_in_several) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"a:b ~~ c:d"}, {"a:b", "~~", "c:d"}, {"a:b~~c:d"}, {"a:b ~~", "c:d"}}) {
    const auto sides = split_spans(words);
    ASSERT_TRUE(sides) << sides.error().message;
    EXPECT_THAT(sides->begins, ElementsAre("a:b"));
    EXPECT_THAT(sides->ends, ElementsAre("c:d"));
  }
  EXPECT_THAT(split_spans({"a:b", "c:d"})->ends, IsEmpty());
}

TEST(SplitSpans, refuses_spans_without_one_of_their_sides_and_spans_of_spans) {
  EXPECT_EQ(split_spans({"a:b ~~"}).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(split_spans({"a:b ~~ c:d ~~ e:f"}).error().kind, ErrorKind::invalid_argument);
}

TEST(ParsePoints, has_patterns_of_both_sides) {
  const auto points = parse_points({"app:begin ~~ app:end"});
  ASSERT_TRUE(points) << points.error().message;
  EXPECT_EQ(points->patterns.size(), 1U);
  EXPECT_EQ(points->ends.size(), 1U);
  EXPECT_EQ(parse_points({"nothing"}).error().kind, ErrorKind::syntax);
}

TEST(ParsePairing, has_keys_of_one_end_or_of_both) {
  EXPECT_THAT(parse_pairing("arg0")->end, IsEmpty());
  EXPECT_EQ(parse_pairing("arg0, pid ~~ arg1, pid")->end.size(), 2U);
  EXPECT_THAT(parse_pairing("arg0 +", "--").error().message, StartsWith("--pair-by"));
}

Question question_about(const char* point) {
  Question question;
  question.points = *parse_points({point});
  return question;
}

TEST(CompleteQuestion, takes_the_stacks_that_lists_name_and_gives_room_to_what_has_a_size) {
  Question question = question_about("kfunc:vfs_read");
  question.processes.pids = {7, 8, 7};
  question.values.print = *parse_prints({"kstack, buf(buf, 4096)"});
  complete_question(question);
  EXPECT_THAT(question.processes.pids, ElementsAre(7, 8));
  EXPECT_EQ(question.stacks.kernel_depth, AskedStacks::kUsualKernelDepth);
  EXPECT_TRUE(question.stacks.kernel_in_lists);
  EXPECT_EQ(question.stacks.user_depth, 0U);
  EXPECT_EQ(question.values.string_size, 4096U);
}

TEST(CompleteQuestion, takes_no_stacks_of_a_recording_which_has_what_it_has) {
  Question question = question_about("kfunc:vfs_read");
  question.values.print = *parse_prints({"kstack"});
  question.recording.replay = "x.rec";
  complete_question(question);
  EXPECT_EQ(question.stacks.kernel_depth, 0U);
}

TEST(CheckQuestion, lets_what_goes_together_pass) {
  EXPECT_TRUE(check_question(question_about("app:x")));
  Question question = question_about("app:x ~~ app:y");
  question.view = *parse_view({.by = "pid", .latency = true});
  EXPECT_TRUE(check_question(question));
}

TEST(CheckQuestion, refuses_what_does_not_in_the_words_of_who_asks) {
  Question question = question_about("app:x");
  question.view = *parse_view({.count = true});
  question.recording.file = "x.rec";
  EXPECT_EQ(check_question(question).error().message, "count has no events to record");
  question.option_prefix = "--";
  EXPECT_EQ(check_question(question).error().message, "--count has no events to record");
}

TEST(CheckQuestion, refuses_parts_of_each_subject) {
  const auto refused = [](auto change) {
    Question question = question_about("app:x");
    change(question);
    const auto checked = check_question(question);
    return !checked && checked.error().kind == ErrorKind::invalid_argument;
  };
  EXPECT_TRUE(refused([](Question& q) { q.processes.children = true; }));
  EXPECT_TRUE(refused([](Question& q) { q.processes = {.pids = {1}, .command = {"ls"}}; }));
  EXPECT_TRUE(refused([](Question& q) { q.points.pairing = *parse_pairing("arg0"); }));
  EXPECT_TRUE(refused([](Question& q) { q.stacks.kernel_depth = 16; }));
  EXPECT_TRUE(refused([](Question& q) { q.limits = {.sample = 10, .max_overhead = 0.05}; }));
  EXPECT_TRUE(refused([](Question& q) { q.following = {.follow = false, .wait = true}; }));
  EXPECT_TRUE(refused([](Question& q) {
    q.view = *parse_view({.slowest = 3});
    q.limits.max_events = 10;
  }));
}

TEST(BeginQuestion, makes_elapsed_count_from_one_moment_in_all_that_is_asked) {
  Question question = question_about("app:x");
  question.where = std::make_shared<const Expression>(*parse_expression("elapsed > 1s"));
  question.view = *parse_view({.by = "elapsed", .sum = "elapsed"});
  begin_question(question, 1234);
  EXPECT_EQ(question.where->began, 1234U);
  EXPECT_EQ(question.view.question->keys[0].began, 1234U);
  EXPECT_EQ(question.view.question->value->began, 1234U);
}

}  // namespace
}  // namespace usdt
