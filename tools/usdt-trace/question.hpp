// SPDX-License-Identifier: BSD-2-Clause
// One question of a run: what it traces, its output and its account.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "flags.hpp"
#include "following.hpp"
#include "ledger.hpp"
#include "record_output.hpp"
#include "run.hpp"
#include "sink.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

/// Used in this order: open(), plan(), with --wait maybe look() again and again, attach(), begin_following(),
/// tell_attached(), step() again and again, finish().
class Question {
 public:
  Question(const Flags& flags, Run& run) : flags_(flags), run_(run) {}
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  ~Question() = default;

  /// Opens what it writes to, and begins to watch for what comes, before anything is looked for. `shown`: where another
  /// question shows what it finds; null: nobody does yet.
  usdt::Result<void> open(const Sink* shown);
  /// False: there is nothing yet, and with --wait that is waited for.
  usdt::Result<bool> plan();
  /// Whether what was waited for has come.
  usdt::Result<bool> look();
  /// False: it changed meanwhile, and what is to come is waited for.
  usdt::Result<bool> attach();
  usdt::Result<void> begin_following();
  void tell_attached();

  /// Takes what has come, waiting for it for at most `wait`, and shows it. Returns how many events there were.
  usdt::Result<std::size_t> step(std::chrono::milliseconds wait);
  /// It has all the events that were asked for, nowhere to write to, or nothing left to trace.
  [[nodiscard]] bool has_enough() const noexcept { return shown_ >= flags_.question.limits.max_events || !written_; }
  [[nodiscard]] bool nothing_left() const noexcept { return nothing_left_; }
  /// Detaches, hands over what is still in the ring, and accounts for every hit.
  void finish();
  /// The same of one that traced nothing; `why` is said.
  void finish_without_trace(std::string_view why);
  [[nodiscard]] bool finished() const noexcept { return ledger_.has_value(); }
  /// For what is to be traced.
  [[nodiscard]] bool waits() const noexcept { return !tracer_; }

  /// All that it writes to.
  [[nodiscard]] const std::vector<Sink>& sinks() const noexcept { return sinks_; }
  /// Where events are shown; null: they are only recorded.
  [[nodiscard]] const Sink* shown() const;
  [[nodiscard]] usdt::Tracer& tracer() { return *tracer_; }
  [[nodiscard]] const Flags& flags() const noexcept { return flags_; }
  /// After finish(): what it ended with.
  [[nodiscard]] bool failed() const;
  [[nodiscard]] bool has_losses() const;

 private:
  void begin_output();
  void tell(const std::string& text);
  void tell(const usdt::Followed& followed);
  usdt::Result<void> begin_following(const std::vector<KnownFile>& known);
  usdt::Result<void> begin_waiting(const usdt::Error& nothing_yet);
  bool is_first(const usdt::FollowEvent& event);
  usdt::Result<void> attach_once();
  void wait_again(const usdt::Error& changed);
  void take(usdt::PlannedQuestion planned);
  /// What was planned, unless it is written to; says what the planner has to say.
  [[nodiscard]] usdt::Result<usdt::PlannedQuestion> apart_from_output(usdt::Result<usdt::PlannedQuestion> planned);
  [[nodiscard]] usdt::TraceOptions options() const;
  usdt::Result<usdt::Tracer> start(usdt::TraceOptions options);
  usdt::Result<void> prepare_dump();
  void take_followed();
  void take_in_order(std::vector<usdt::FollowEvent> events);
  void let_go(const std::vector<usdt::FollowEvent>& gone);
  void follow(const usdt::FollowEvent& event);
  bool follow(const usdt::FollowEvent& event, usdt::PlannedQuestion more);
  void has_grown();
  /// Applies --dump-on to the plan that the tracer has.
  void find_dump_on();
  /// Looks at a command and what it started, more and more seldom: whether they run code from other memory than the
  /// files'. Who is traced by number was looked at before.
  void report_moved_code();
  /// The same at the end of a trace of everybody.
  void report_moved_code_of_all();
  void tell_moved_code(const std::vector<pid_t>& pids);
  void tell_if_others_pay();
  void report_changes();
  void report_given_up();
  void keep_if_slow(const usdt::Event& event);
  void name_stacks_of_slowest();
  void find_in_flight();
  usdt::Result<std::size_t> take(std::chrono::milliseconds wait);
  void pause_while_recording(std::size_t events) const;
  usdt::Result<void> show_table_so_far();
  usdt::Result<void> show_table(bool last);
  /// Names the stacks of rows while their processes live; where there are many rows, not all the time.
  void name_new_stacks();
  /// Those of the tracer, and those of processes that have ended.
  [[nodiscard]] usdt::Result<std::vector<usdt::TableRow>> rows();
  void keep_rows_of_ended();
  void flush();
  void detach();
  [[nodiscard]] usdt::SessionSummary summary() const;
  [[nodiscard]] std::vector<usdt::Account> accounts() const;

  const Flags& flags_;
  Run& run_;
  std::optional<usdt::QuestionPlanner> planner_;  ///< once it is known whom the trace is about
  std::shared_ptr<usdt::AttachPlan> plan_;        ///< what the trace begins with
  usdt::Printed printed_;                         ///< of the tracer's plan
  usdt::FoundPoints so_far_;                      ///< with --wait: of spans maybe one side,
  std::optional<usdt::FollowEvent> first_;        ///< what was waited for,
  std::vector<usdt::FollowEvent> rest_ = {};      ///< and what came with it
  std::shared_ptr<usdt::EventRing> ring_;         ///< made while what is to be traced is looked for
  std::optional<usdt::Tracer> tracer_;
  Following following_{flags_};
  std::optional<usdt::LiveSurroundings> around_;
  std::vector<Sink> sinks_;
  Recorder* recorder_ = nullptr;  ///< of one of them
  std::optional<usdt::EventFilter> dump_on_;
  bool dumped_ = false;  ///< it held
  std::optional<Ledger> ledger_;
  std::uint64_t shown_ = 0;
  bool written_ = true;  ///< all of it so far
  std::size_t changes_told_ = 0;
  bool nothing_left_ = false;  ///< every site was let go,
  bool others_pay_told_ = false;
  std::size_t shortened_told_ = 0;  ///< sites with fewer values that were told
  bool may_come_again_ = false;     ///< but some since their file is gone, whose name is watched
  Clock::time_point next_table_;
  Clock::time_point next_naming_;
  Clock::time_point next_account_;
  bool told_given_up_ = false;
  Clock::time_point next_moved_look_;
  Clock::duration moved_pause_{};  ///< until the one after it
  std::set<std::string> moved_told_;
  std::map<std::vector<usdt::TableKey>, usdt::TableRow> ended_;  ///< rows of processes that have ended
  usdt::HeatSlicer slicer_{0};
  usdt::HitRates rates_;
  usdt::SlowestEvents slowest_{flags_.question.view.slowest};
};

}  // namespace usdt_trace
