// SPDX-License-Identifier: BSD-2-Clause
// One question of a live session: what it traces, who takes its answers, and its account.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "event/expected_process.hpp"
#include "session/following.hpp"
#include "session/live_filter.hpp"
#include "session/live_run.hpp"
#include "session/live_view.hpp"
#include "session/trace_watch.hpp"
#include "usdt/answers.hpp"
#include "usdt/event_filter.hpp"
#include "usdt/question_plan.hpp"
#include "usdt/surroundings.hpp"
#include "usdt/tracer.hpp"

namespace usdt::session {

/// Used in this order: open(), plan(), with AskedFollowing::wait maybe look() again and again, attach(),
/// begin_following(), tell_attached(), step() again and again, finish().
class LiveQuestion {
 public:
  LiveQuestion(Question& question, std::vector<AnswerConsumer*> consumers, LiveRun& run)
      : question_(question), run_(run), consumer_(std::move(consumers)) {}
  LiveQuestion(const LiveQuestion&) = delete;
  LiveQuestion& operator=(const LiveQuestion&) = delete;
  ~LiveQuestion() = default;

  /// Begins to watch for what comes, before anything is looked for.
  [[nodiscard]] Result<void> open();
  /// Plans the question. False: there is nothing yet, and it is waited for.
  [[nodiscard]] Result<bool> plan();
  /// Whether a file that was waited for has come.
  [[nodiscard]] bool look();
  /// Attaches the plan. False: a file changed meanwhile, and is waited for.
  [[nodiscard]] Result<bool> attach();
  [[nodiscard]] Result<void> begin_following();
  void tell_attached();

  /// Takes what has come, waiting for it for at most `wait`, and hands it over. Returns how many events there were.
  [[nodiscard]] Result<std::size_t> step(std::chrono::milliseconds wait);
  /// Whether it has all the events that were asked for, or nobody to give them to.
  [[nodiscard]] bool has_enough() const noexcept {
    return finished_ || given_ >= question_.limits.max_events || !handed_on_;
  }
  [[nodiscard]] bool nothing_left() const noexcept { return watch_ && watch_->nothing_left(); }
  /// Detaches, hands over what is still in the ring, and accounts for every hit. Errors: those of Tracer::table(), of
  /// which there is no last look then.
  [[nodiscard]] Result<void> finish();
  /// Ends a question that traced nothing; `why` is said.
  void finish_without_trace(std::string_view why);
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  /// Whether it waits for something to trace.
  [[nodiscard]] bool waits() const noexcept { return !tracer_; }

  [[nodiscard]] const Question& question() const noexcept { return question_; }
  [[nodiscard]] AnswerConsumer& consumer() noexcept { return consumer_; }
  [[nodiscard]] Tracer& tracer() { return *tracer_; }

 private:
  void tell(SessionNotice::Kind kind, std::string text, std::string subject = {});
  void tell(const Followed& followed);
  [[nodiscard]] Result<void> begin_following(const std::vector<KnownFile>& known);
  [[nodiscard]] Result<void> begin_waiting(const Error& nothing_yet);
  [[nodiscard]] bool is_first(const FollowEvent& event);
  [[nodiscard]] Result<void> attach_once(bool leave_out_changed);
  void wait_again(const Error& changed);
  void keep(PlannedQuestion planned);
  /// Returns a plan about the command's own process, the only one that counts where what it starts is not followed.
  [[nodiscard]] std::shared_ptr<const AttachPlan> of_command_alone(AttachPlan plan) const;
  /// Returns the plan, if consumers can take it; says what the planner has to say.
  [[nodiscard]] Result<PlannedQuestion> checked(Result<PlannedQuestion> planned);
  [[nodiscard]] Result<void> check_broker() const;
  [[nodiscard]] TraceOptions options() const;
  [[nodiscard]] Result<Tracer> start(TraceOptions options);
  void begin_answers();
  void take_followed();
  void leave_out_gone();
  void detach_gone();
  void detach_files(const std::set<std::pair<dev_t, ino_t>>& wanted, FollowKind kind);
  void tell_crowded();
  void follow(const FollowEvent& event);
  [[nodiscard]] Result<void> follow(const FollowEvent& event, PlannedQuestion more);
  void has_grown();
  /// Applies AskedRecording::dump_on to the plan that the tracer has.
  [[nodiscard]] Result<void> find_dump_on(const AttachPlan& plan);
  [[nodiscard]] Result<std::size_t> take(std::chrono::milliseconds wait);
  [[nodiscard]] std::chrono::milliseconds look_at_command(std::chrono::milliseconds wait);
  void hand_over(const Event& event);
  void hand_over_kept();
  [[nodiscard]] bool is_to_be_kept(const Event& event);
  void pause_while_nobody_looks(std::size_t events) const;
  void detach();
  [[nodiscard]] SessionSummary summary();

  Question& question_;
  LiveRun& run_;
  ConsumerGroup consumer_;
  std::optional<QuestionPlanner> planner_;  ///< once it is known whom the trace is about
  std::shared_ptr<const AttachPlan> plan_;  ///< what the trace begins with
  Printed printed_;                         ///< of the tracer's plan
  FoundPoints so_far_;                      ///< with AskedFollowing::wait: of spans maybe one side,
  std::optional<FollowEvent> first_;        ///< what was waited for,
  std::deque<FollowEvent> rest_ = {};       ///< and what came since, in its order
  std::shared_ptr<EventRing> ring_;         ///< made while what is to be traced is looked for
  std::optional<Tracer> tracer_;
  Following following_{question_};
  std::optional<LiveSurroundings> around_;
  event::ExpectedProcess expected_;                ///< the command
  std::vector<OwnedEvent> kept_;                   ///< the first ones with functions of scripts,
  std::optional<Clock::time_point> kept_until_{};  ///< and when they are handed over
  std::optional<LiveView> view_;
  std::optional<TraceWatch> watch_;
  std::optional<EventFilter> dump_on_;
  std::unique_ptr<LiveFilter> filter_;                 ///< null: the kernel decides the whole condition
  bool dumped_ = false;                                ///< it held
  bool told_of_room_ = false, told_of_crowd_ = false;  ///< FollowCounts::unused, FollowCounts::crowded
  std::uint64_t given_ = 0;
  bool handed_on_ = true;  ///< all of it so far
  bool finished_ = false;
};

}  // namespace usdt::session
