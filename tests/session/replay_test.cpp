// SPDX-License-Identifier: BSD-2-Clause
// Questions about recordings that the test makes.
#include "usdt/replay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/record/traces.hpp"
#include "usdt/recorded_question.hpp"
#include "usdt/testing/event_builder.hpp"

namespace usdt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kSecond = 1'000'000'000;

/// Keeps what it is given.
class Kept final : public AnswerConsumer {
 public:
  void trace(const AttachPlan& /*plan*/, std::size_t probes) override { probes_ = probes; }
  void event(const Event& event) override { values.push_back(std::get<std::int64_t>(event.value(0))); }
  void table(const ArrangedTable& table) override { rows = table.rows; }

  std::size_t probes_ = 0;
  std::vector<std::int64_t> values;
  std::vector<ArrangedRow> rows;
};

/// A recording of events with the values 0 to 9, of which 5 more were lost.
class Recorded {
 public:
  explicit Recorded(const Question& question = {}) {
    const AttachPlan plan = testing::synthetic_plan("app", "request", Machine::x86_64, "-4@%edi");
    const Printed printed{.lists = {{}}, .of_probe = {0}};
    auto writer = RecordingWriter::create(file_.path(), plan, testing::layout_of(plan),
                                          recording_info(question, printed, "replay_test 1"));
    EXPECT_TRUE(writer) << writer.error().message;
    for (int n = 0; n < 10; ++n) {
      const auto record = *testing::EventBuilder(plan).timestamp(kSecond + n).pid(n % 2 == 0 ? 7 : 8).arg(0, n).build();
      EXPECT_TRUE(writer->event(*Event::from(record, plan, testing::layout_of(plan)), 0));
    }
    SessionSummary summary{.probes = std::vector<Account>(1)};
    summary.probes[0].hits = 15;
    summary.probes[0].delivered = 10;
    summary.probes[0].ring_full = 5;
    EXPECT_TRUE(writer->finish(recorded_ledger(summary)));
  }

  [[nodiscard]] Question question() const {
    Question question;
    question.recording.replay = file_.path();
    return question;
  }

 private:
  record_test::File file_;
};

/// Feeds `consumer` with all there is.
SessionSummary replayed(QuestionReplay& replay, Kept& consumer) {
  replay.begin(consumer);
  for (auto more = replay.step(); more && *more;) more = replay.step();
  replay.finish();
  return replay.summary();
}

TEST(QuestionReplay, gives_events_and_accounts_for_every_hit_of_the_trace) {
  const Recorded recorded;
  auto replay = QuestionReplay::open(recorded.question());
  ASSERT_TRUE(replay) << replay.error().message;
  EXPECT_THAT(replay->take_notices().front().text, HasSubstr("replay_test 1"));
  Kept kept;
  const Account total = replayed(*replay, kept).total();
  EXPECT_EQ(kept.probes_, 1U);
  EXPECT_THAT(kept.values, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(total.hits, 15U);
  EXPECT_EQ(total.delivered, 10U);
  EXPECT_EQ(total.lost(), 5U);
}

TEST(QuestionReplay, asks_of_events_what_a_trace_asks_of_hits) {
  const Recorded recorded;
  Question question = recorded.question();
  question.where = std::make_shared<const Expression>(*parse_expression("arg0 > 2 && pid == 7"));
  question.limits.max_events = 2;
  auto replay = QuestionReplay::open(question);
  ASSERT_TRUE(replay) << replay.error().message;
  Kept kept;
  const Account total = replayed(*replay, kept).total();
  EXPECT_THAT(kept.values, ElementsAre(4, 6));
  EXPECT_EQ(replay->given(), 2U);
  EXPECT_EQ(replay->beyond(), 1U);
  EXPECT_EQ(total.rejected, 7U);
}

TEST(QuestionReplay, makes_tables_that_are_folded_and_in_order) {
  const Recorded recorded;
  Question question = recorded.question();
  question.view = *parse_view({.by = "pid", .sum = "arg0"});
  auto replay = QuestionReplay::open(question);
  ASSERT_TRUE(replay) << replay.error().message;
  Kept kept;
  static_cast<void>(replayed(*replay, kept));
  ASSERT_EQ(kept.rows.size(), 2U);
  EXPECT_EQ(kept.rows[0].sum, 1 + 3 + 5 + 7 + 9);
  EXPECT_EQ(kept.rows[1].sum, 0 + 2 + 4 + 6 + 8);
}

TEST(QuestionReplay, says_what_a_recording_does_not_have) {
  const Recorded recorded;
  Question question = recorded.question();
  question.points = *parse_points({"app:other"});
  EXPECT_EQ(QuestionReplay::open(question).error().kind, ErrorKind::not_found);
  question = recorded.question();
  question.option_prefix = "--";
  question.view = *parse_view({.by = "ustack"});
  EXPECT_THAT(QuestionReplay::open(question).error().message, HasSubstr("a trace with --record and --ustack has them"));
  question.recording.replay = "/nowhere/at.rec";
  EXPECT_EQ(QuestionReplay::open(question).error().kind, ErrorKind::not_found);
}

TEST(RecordedQuestion, is_what_was_asked_when_the_recording_was_made) {
  Question asked;
  asked.where = std::make_shared<const Expression>(*parse_expression("arg0 >= 0"));
  asked.stacks.user_depth = 12;
  asked.limits.sample = 10;
  asked.began = 77;
  const Recorded recorded(asked);
  auto replay = QuestionReplay::open(recorded.question());
  ASSERT_TRUE(replay) << replay.error().message;
  EXPECT_EQ(replay->question().where->text, "arg0 >= 0");
  EXPECT_EQ(replay->question().stacks.user_depth, 12U);
  EXPECT_EQ(replay->question().limits.sample, 10U);
  EXPECT_EQ(replay->question().began, 77U);
}

}  // namespace
}  // namespace usdt
