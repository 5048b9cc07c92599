// SPDX-License-Identifier: BSD-2-Clause
// Live sessions: questions about this very program, which counts what it passes.
#include "usdt/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "own_typed.hpp"
#include "usdt/sink.hpp"

namespace usdt {
namespace {

using namespace std::chrono_literals;
using test::or_throw;
using test::pass_typed;
using ::testing::Contains;
using ::testing::HasSubstr;

void or_throw(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

/// Keeps what it is given.
class Kept : public AnswerConsumer {
 public:
  void begin(const AnswerStart& start) override { probes = start.plan.probes.size(); }
  void event(const Event& event) override { numbers.push_back(event.arg<int>(1).value_or(-1)); }
  void table(const ArrangedTable& look) override {
    for (const ArrangedRow& row : look.rows) in_table += row.count;
  }
  void notice(const SessionNotice& notice) override {
    notices.push_back(notice.kind);
    if (notice.kind == SessionNotice::Kind::attached) attached_by = notice.detail;
  }
  void summary(const SessionSummary& summary) override { total = summary.total(); }
  void end(const AnswerEnd& end) override { given = end.given; }
  void end_untraced(const usdt::Question& /*question*/) override { untraced = true; }

  std::size_t probes = 0;
  std::vector<int> numbers = {};
  std::uint64_t in_table = 0;
  std::vector<SessionNotice::Kind> notices = {};
  std::string attached_by = {};
  Account total = {};
  std::optional<std::uint64_t> given = {};
  bool untraced = false;
};

/// A question about the hits of this process.
Question own_question(const std::string& point = "usdt:/proc/self/exe:own:typed") {
  Question question;
  question.points = or_throw(parse_points({point}));
  question.processes.pids = {::getpid()};
  return question;
}

Question complete(Question question) {
  complete_question(question);
  or_throw(check_question(question));
  return question;
}

/// Steps until `enough` says so; false: ten seconds were not enough.
bool step_until(Session& session, const std::function<bool()>& enough) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!enough()) {
    if (!or_throw(session.step(20ms)) || std::chrono::steady_clock::now() > deadline) return enough();
  }
  return true;
}

class LiveSession : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "not root";
  }
};

TEST_F(LiveSession, gives_each_hit_and_accounts_for_it) {
  Kept kept;
  Session session;
  session.add(complete(own_question()), {&kept});
  or_throw(session.begin());
  EXPECT_TRUE(session.traces());
  EXPECT_EQ(kept.probes, 1U);
  pass_typed(100);
  ASSERT_TRUE(step_until(session, [&] { return kept.numbers.size() >= 100; }));
  or_throw(session.finish());
  or_throw(session.finish());  // no second end
  ASSERT_EQ(kept.numbers.size(), 100U);
  for (int n = 0; n < 100; ++n) EXPECT_EQ(kept.numbers[static_cast<std::size_t>(n)], n);
  EXPECT_EQ(kept.total.hits, 100U);
  EXPECT_EQ(kept.total.delivered, 100U);
  EXPECT_EQ(kept.given, 100U);
  EXPECT_THAT(kept.notices, Contains(SessionNotice::Kind::attached));
}

TEST_F(LiveSession, answers_several_questions_at_once) {
  Kept events;
  Kept table;
  Question counting = own_question();
  counting.view = or_throw(parse_view({.by = "pid"}));
  Session session;
  session.add(complete(own_question()), {&events});
  session.add(complete(counting), {&table});
  or_throw(session.begin());
  pass_typed(50);
  ASSERT_TRUE(step_until(session, [&] { return events.numbers.size() >= 50; }));
  or_throw(session.finish());
  EXPECT_EQ(events.total.hits, 50U);
  EXPECT_EQ(table.in_table, 50U);
  EXPECT_EQ(table.total.hits, 50U);
}

TEST_F(LiveSession, goes_by_features_of_its_own) {
  Kept by_perf, by_link;
  Session without({.features = FeatureChoice{.disabled = {Feature::uprobe_multi}}});
  Session with;
  without.add(complete(own_question()), {&by_perf});
  with.add(complete(own_question()), {&by_link});
  or_throw(without.begin());
  or_throw(with.begin());
  pass_typed(20);
  ASSERT_TRUE(step_until(without, [&] { return by_perf.numbers.size() >= 20; }));
  ASSERT_TRUE(step_until(with, [&] { return by_link.numbers.size() >= 20; }));
  or_throw(without.finish());
  or_throw(with.finish());
  EXPECT_EQ(by_perf.numbers, by_link.numbers);
  EXPECT_THAT(by_perf.attached_by, HasSubstr("by perf_uprobe"));
  const bool is_there = probe_feature(Feature::uprobe_multi).answer == Answer::yes;
  EXPECT_THAT(by_link.attached_by, HasSubstr(is_there ? "by uprobe_multi" : "by perf_uprobe"));
}

TEST_F(LiveSession, ends_with_as_many_events_as_are_asked_for) {
  Kept kept;
  Question question = own_question();
  question.limits.max_events = 10;
  Session session;
  session.add(complete(question), {&kept});
  or_throw(session.begin());
  pass_typed(30);
  EXPECT_FALSE(step_until(session, [] { return false; })) << "it is over";
  or_throw(session.finish());
  EXPECT_EQ(kept.numbers.size(), 10U);
  EXPECT_EQ(kept.total.hits, 30U);
  EXPECT_EQ(kept.total.discarded, 20U);
}

TEST_F(LiveSession, ends_when_its_time_is_over_or_somebody_asks) {
  Question question = own_question();
  question.limits.seconds = 0.2;
  for (const bool asked : {false, true}) {
    Kept kept;
    if (asked) question.limits.seconds = {};
    Session session;
    session.add(complete(question), {&kept});
    or_throw(session.begin());
    const std::jthread other([&] {
      std::this_thread::sleep_for(100ms);
      if (asked) session.request_stop();
    });
    const auto began = std::chrono::steady_clock::now();
    EXPECT_FALSE(step_until(session, [] { return false; }));
    EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
    or_throw(session.finish());
    EXPECT_EQ(kept.given, 0U);
  }
}

TEST_F(LiveSession, waits_for_a_file_and_traces_it_from_then_on) {
  const std::filesystem::path copy = std::filesystem::temp_directory_path() / ("session-" + std::to_string(::getpid()));
  Kept kept;
  Question question;
  question.points = or_throw(parse_points({"usdt:" + copy.string() + ":own:typed"}));
  question.following.wait = true;
  Session session;
  session.add(complete(question), {&kept});
  or_throw(session.begin());
  EXPECT_FALSE(session.traces());
  EXPECT_THAT(kept.notices, Contains(SessionNotice::Kind::waiting));
  std::filesystem::copy_file("/proc/self/exe", copy);
  EXPECT_TRUE(step_until(session, [&] { return session.traces(); }));
  EXPECT_THAT(kept.notices, Contains(SessionNotice::Kind::followed));
  or_throw(session.finish());
  std::filesystem::remove(copy);
  EXPECT_EQ(kept.given, 0U);
}

TEST_F(LiveSession, says_that_nothing_came) {
  Kept kept;
  Question question;
  question.points = or_throw(parse_points({"usdt:/nowhere/at/all:own:typed"}));
  question.following.wait = true;
  question.limits.seconds = 0.1;
  Session session;
  session.add(complete(question), {&kept});
  or_throw(session.begin());
  EXPECT_FALSE(step_until(session, [] { return false; }));
  or_throw(session.finish());
  EXPECT_TRUE(kept.untraced);
  EXPECT_FALSE(kept.given);
}

TEST_F(LiveSession, has_a_descriptor_for_event_loops) {
  Kept kept;
  Session session;
  EXPECT_EQ(session.fd().error().kind, ErrorKind::invalid_argument);
  session.add(complete(own_question()), {&kept});
  or_throw(session.begin());
  pollfd entry{or_throw(session.fd()), POLLIN, 0};
  const std::jthread other([] { pass_typed(5); });
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (kept.numbers.size() < 5 && std::chrono::steady_clock::now() < deadline) {
    ASSERT_EQ(::poll(&entry, 1, 1000), 1);
    or_throw(session.step(0ms));
  }
  EXPECT_EQ(kept.numbers.size(), 5U);
}

TEST_F(LiveSession, lets_a_consumer_refuse_what_is_planned) {
  class Refuses final : public Kept {
    Result<void> check(const AttachPlan& /*plan*/) override { return fail(ErrorKind::invalid_argument, "not that"); }
  } refuses;
  Session session;
  session.add(complete(own_question()), {&refuses}, "here");
  EXPECT_EQ(session.begin().error().message, "here: not that");
}

TEST_F(LiveSession, passes_on_what_a_consumer_throws_and_can_be_finished) {
  class Throws final : public Kept {
   public:
    void event(const Event& event) override {
      Kept::event(event);
      if (numbers.size() == 3) throw std::runtime_error("enough");
    }
  } throws;
  Session session;
  session.add(complete(own_question()), {&throws});
  or_throw(session.begin());
  pass_typed(10);
  EXPECT_THROW(step_until(session, [] { return false; }), std::runtime_error);
  or_throw(session.finish());
  EXPECT_EQ(throws.numbers.size(), 10U);
  EXPECT_EQ(throws.total.hits, 10U);
  EXPECT_EQ(throws.total.discarded, 1U) << "the event that was thrown for";
}

/// What every sink can write: some take nothing but stacks.
Question own_question_with_stacks() {
  Question question = own_question();
  question.stacks.user_depth = 4;
  return question;
}

/// Stacks and numbers are added up until there are no more hits.
bool is_written_at_end(const SinkFormat& format) {
  constexpr std::array<std::string_view, 5> kAtEnd{"folded", "flame", "report", "pprof", "prometheus"};
  return std::ranges::find(kAtEnd, format.name) != kAtEnd.end();
}

/// A trace of 100 hits by a sink whose function throws at one of its calls, counted from 0.
struct TracedByThrowing {
  TracedByThrowing(std::string_view format, int throws_at) {
    auto sink = Sink::open(format, {.write = [&](std::string_view) {
                             if (calls++ == throws_at) throw std::runtime_error("no room left here");
                             return true;
                           }});
    if (!sink) throw std::runtime_error(sink.error().message);
    Session session;
    session.add(complete(own_question_with_stacks()), {&kept, sink->get()});
    or_throw(session.begin());
    for (int round = 0; round < 5 && more; ++round) {
      pass_typed(20);
      for (int n = 0; n < 3 && more; ++n) more = or_throw(session.step(1ms));
    }
    more = more && or_throw(session.step(1ms));
    or_throw(session.finish());
    failure = (*sink)->failure();
    checked = (*sink)->check_written();
  }

  Kept kept = {};
  int calls = 0;
  bool more = true;
  std::optional<std::string> failure = {};
  Result<void> checked = {};
};

TEST_F(LiveSession, says_what_is_missing_where_a_sinks_function_throws) {
  for (const SinkFormat& format : sink_formats()) {
    if (format.is_sent) continue;  // it is given to no function
    const TracedByThrowing whole(format.name, -1);
    EXPECT_EQ(whole.failure, std::nullopt) << format.name;
    EXPECT_TRUE(whole.checked && whole.more);
    EXPECT_EQ(whole.kept.total.not_written, 0U);
    ASSERT_GE(whole.calls, is_written_at_end(format) ? 1 : format.has_lines ? 5 : 2) << format.name;
    std::uint64_t not_written = 0;
    for (int call = 0; call < whole.calls; ++call) {
      const TracedByThrowing cut(format.name, call);
      if (cut.calls <= call) continue;  // it was given the same in larger pieces
      const std::string what = std::string(format.name) + ", call " + std::to_string(call);
      EXPECT_EQ(cut.calls, call + 1) << "it is not called again: " << what;
      EXPECT_THAT(cut.failure.value_or(""), HasSubstr("no room left here")) << what;
      EXPECT_EQ(cut.checked.error().kind, ErrorKind::io) << what;
      const Account& total = cut.kept.total;
      EXPECT_EQ(total.hits, total.delivered + total.lost()) << what;
      EXPECT_EQ(total.lost(), total.not_written) << what;
      EXPECT_EQ(cut.kept.numbers.size(), total.hits) << "others have all of it: " << what;
      not_written += total.not_written;
    }
    EXPECT_GT(not_written, 0U) << format.name;
  }
}

/// Throws at one of its calls, counted from 0.
class ThrowsAt final : public AnswerConsumer {
 public:
  explicit ThrowsAt(int call) : left_(call) {}
  Result<void> check(const AttachPlan& /*plan*/) override { return count(), Result<void>(); }
  void begin(const AnswerStart& /*start*/) override { count(); }
  void event(const Event& /*event*/) override { count(); }
  void notice(const SessionNotice& /*notice*/) override { count(); }
  bool flush() override { return count(), true; }
  bool wants_account() const override { return true; }
  void account(const SessionSummary& /*summary*/) override { count(); }
  void ending(const SessionSummary& /*summary*/) override { count(); }
  void flush_rest() override { count(); }
  void summary(const SessionSummary& /*summary*/) override { count(); }
  void end(const AnswerEnd& /*end*/) override { count(), ended_ = true; }

  [[nodiscard]] bool ended() const noexcept { return ended_; }

 private:
  void count() {
    if (left_-- == 0) throw std::runtime_error("now");
  }
  int left_;
  bool ended_ = false;
};

TEST_F(LiveSession, survives_a_consumer_that_throws_at_any_of_its_calls) {
  int threw = 0;
  bool ended = false;
  for (int call = 0; call < 100 && !ended; ++call) {
    ThrowsAt consumer(call);
    {
      Session session;
      session.add(complete(own_question()), {&consumer});
      try {
        or_throw(session.begin());
        pass_typed(2);
        for (int n = 0; n < 3; ++n) or_throw(session.step(1ms));
        or_throw(session.finish());
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "now");
        ++threw;
      }
    }
    ended = consumer.ended() && threw == call;
  }
  EXPECT_TRUE(ended) << "one that throws later than the last call is not thrown out";
  EXPECT_GT(threw, 10);
  Kept kept;  // nothing of theirs is left in the way
  Session session;
  session.add(complete(own_question()), {&kept});
  or_throw(session.begin());
  pass_typed(3);
  EXPECT_TRUE(step_until(session, [&] { return kept.numbers.size() == 3; }));
}

TEST_F(LiveSession, needs_the_process_of_a_command) {
  Kept kept;
  Question question = own_question();
  question.processes = {.command = {"true"}};
  Session session;
  session.add(complete(question), {&kept});
  EXPECT_THAT(session.begin().error().message, HasSubstr("SessionOptions::command"));
}

TEST_F(LiveSession, begins_once) {
  Session nothing;
  EXPECT_EQ(nothing.begin().error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(nothing.step(0ms).error().kind, ErrorKind::invalid_argument);
  Kept kept;
  Session session;
  session.add(complete(own_question()), {&kept});
  or_throw(session.begin());
  EXPECT_EQ(session.begin().error().kind, ErrorKind::invalid_argument);
}

}  // namespace
}  // namespace usdt
