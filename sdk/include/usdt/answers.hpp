// SPDX-License-Identifier: BSD-2-Clause
// Takers of the answers to a question: AnswerConsumer, which a live trace and the replay of a recording feed alike. It
// learns first what the answers are about (begin(), trace()), then takes events, or tables, heat maps and the slowest,
// and at the end the account of all hits (summary()). A ConsumerGroup makes one of several. All calls come from one
// thread at a time, and what they refer to lives until they return, unless it says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "usdt/account.hpp"
#include "usdt/event.hpp"
#include "usdt/follow.hpp"
#include "usdt/plan.hpp"
#include "usdt/print_list.hpp"
#include "usdt/question.hpp"
#include "usdt/question_plan.hpp"
#include "usdt/result.hpp"
#include "usdt/slowest.hpp"
#include "usdt/surroundings.hpp"
#include "usdt/tracer.hpp"
#include "usdt/view.hpp"

namespace usdt {
inline namespace v1 {

/// The rows of a table at one look, folded and in order.
struct ArrangedTable {
  const PlannedTable& table;
  const std::vector<ArrangedRow>& rows;     ///< arrange_rows(); View::top is not applied
  const std::optional<Overhead>& overhead;  ///< how they are estimated
  bool last = true;                         ///< there will be no further look
};

/// The subject of answers. All of it lives until AnswerConsumer::end() has returned, `plan` until
/// AnswerConsumer::trace() gives another one.
struct AnswerStart {
  const Question& question;
  const AttachPlan& plan;     ///< the probes traced so far; AnswerConsumer::trace() tells when it grows
  const EventLayout* layout;  ///< how events of `plan` are laid out; null: they come out of a recording
  const Printed& printed;     ///< the list by which each probe is shown; it grows with the plan
  Surroundings& around;       ///< answers questions about the event at hand
};

/// How a trace, or the replay of one, ended.
struct AnswerEnd {
  const AttachPlan& plan;
  const SessionSummary& summary;
  std::uint64_t given = 0;    ///< events that consumers were given
  std::uint64_t beyond = 0;   ///< events of a recording behind AskedLimits::max_events
  bool follows = false;       ///< files that take the place of others were traced, too
  bool nothing_left = false;  ///< every site was detached, since its file changed or went
};

/// Takes answers. Calls that a consumer has no use for do nothing.
class AnswerConsumer {
 public:
  AnswerConsumer() = default;
  AnswerConsumer(const AnswerConsumer&) = delete;
  AnswerConsumer& operator=(const AnswerConsumer&) = delete;
  virtual ~AnswerConsumer() = default;

  /// Says whether answers about `plan` can be taken, before anything of it is attached. Its error ends the session, or
  /// keeps a file that came from being traced.
  [[nodiscard]] virtual Result<void> check(const AttachPlan& /*plan*/) { return {}; }
  /// Answers begin.
  virtual void begin(const AnswerStart& /*start*/) {}
  /// Events are of `plan` from now on, what it has grown to. The plan of a recording is whole from the beginning; its
  /// first `probes` are traced by now.
  virtual void trace(const AttachPlan& /*plan*/, std::size_t /*probes*/) {}
  /// So many of a recording's probes are traced by now.
  virtual void know(std::size_t /*probes*/) {}
  /// An event.
  virtual void event(const Event& /*event*/) {}
  /// A file that came while the trace runs, and what became of it.
  virtual void followed(const Followed& /*followed*/) {}
  /// The rows of View::question so far, or in the end.
  virtual void table(const ArrangedTable& /*table*/) {}
  /// Takes, if View::heat_map is set, the hits since the slice before, in place of table(). `last`: there will be no
  /// further slice.
  virtual void heat(const HeatSlice& /*slice*/, bool /*last*/) {}
  /// Takes, if View::slowest is set, the events that took longest so far, or in the end (`last`), in place of event().
  virtual void slowest(const SlowestEvents& /*events*/, bool /*last*/) {}
  /// Takes a notice for people. The first may come before begin(), the last after end().
  virtual void notice(const SessionNotice& /*notice*/) {}

  /// Hands on what is buffered; called after each step, and may wait as long as the trace shall go on. False: nothing
  /// more can be handed on, and the question has its answers.
  [[nodiscard]] virtual bool flush() { return true; }
  /// Whether an account() is due.
  [[nodiscard]] virtual bool wants_account() const { return false; }
  /// The account of all hits so far, for who wants one.
  virtual void account(const SessionSummary& /*summary*/) {}
  /// Whether a look() at a table is due, which View::interval knows nothing of.
  [[nodiscard]] virtual bool wants_table() const { return false; }
  /// The rows of View::question so far, for who wants them. Live traces alone have such looks, and not more often than
  /// every tenth of their time goes into them.
  virtual void look(const ArrangedTable& /*table*/) {}
  /// Whether nobody looks at answers as they come, so that larger portions may come more seldom.
  [[nodiscard]] virtual bool in_no_hurry() const { return false; }

  /// All events were given. `summary` is the account of them before any was found not to be written.
  virtual void ending(const SessionSummary& /*summary*/) {}
  /// Hands on all that is buffered, or gives it up. It may wait as long as the trace shall go on, and a moment after
  /// that.
  virtual void flush_rest() {}
  /// The account of all hits, behind the last flush_rest(); another one follows.
  virtual void summary(const SessionSummary& /*summary*/) {}
  /// The end, once all consumers have had the account.
  virtual void end(const AnswerEnd& /*end*/) {}
  /// In place of begin() and of all that follows it: the session ended before there was anything to trace.
  virtual void end_untraced(const Question& /*question*/) {}

  /// Events that did not get to where they were to be written, by probe of the plan: they count as lost. Empty: none.
  [[nodiscard]] virtual std::vector<std::uint64_t> not_written() const { return {}; }
  /// Events that were taken, and found no room among the stacks that are kept, by probe of the plan: they count as
  /// folded_full. Empty: none.
  [[nodiscard]] virtual std::vector<std::uint64_t> folded_full() const { return {}; }
  /// Events that were taken and that nobody wants any more, by probe of the plan: they count as discarded. Empty: none.
  [[nodiscard]] virtual std::vector<std::uint64_t> forgotten() { return {}; }
  /// Values that were asked for and could not be read so far.
  [[nodiscard]] virtual std::uint64_t unreadable() const { return 0; }
};

/// Gives what it takes to each of several consumers, in their order. They live as long as the group.
class ConsumerGroup final : public AnswerConsumer {
 public:
  /// Makes a group of `consumers`, none of them null.
  explicit ConsumerGroup(std::vector<AnswerConsumer*> consumers);
  ~ConsumerGroup() override;

  [[nodiscard]] Result<void> check(const AttachPlan& plan) override;
  void begin(const AnswerStart& start) override { each(&AnswerConsumer::begin, start); }
  void trace(const AttachPlan& plan, std::size_t probes) override { each(&AnswerConsumer::trace, plan, probes); }
  void know(std::size_t probes) override { each(&AnswerConsumer::know, probes); }
  void event(const Event& event) override { each(&AnswerConsumer::event, event); }
  void followed(const Followed& followed) override { each(&AnswerConsumer::followed, followed); }
  void table(const ArrangedTable& table) override { each(&AnswerConsumer::table, table); }
  void heat(const HeatSlice& slice, bool last) override { each(&AnswerConsumer::heat, slice, last); }
  void slowest(const SlowestEvents& events, bool last) override { each(&AnswerConsumer::slowest, events, last); }
  void notice(const SessionNotice& notice) override { each(&AnswerConsumer::notice, notice); }
  /// False if one of them says so; each is asked.
  [[nodiscard]] bool flush() override;
  [[nodiscard]] bool wants_account() const override;
  void account(const SessionSummary& summary) override;
  [[nodiscard]] bool wants_table() const override;
  void look(const ArrangedTable& table) override;
  /// True if all of them say so.
  [[nodiscard]] bool in_no_hurry() const override;
  void ending(const SessionSummary& summary) override { each(&AnswerConsumer::ending, summary); }
  void flush_rest() override { each(&AnswerConsumer::flush_rest); }
  void summary(const SessionSummary& summary) override { each(&AnswerConsumer::summary, summary); }
  void end(const AnswerEnd& end) override { each(&AnswerConsumer::end, end); }
  void end_untraced(const Question& question) override { each(&AnswerConsumer::end_untraced, question); }
  /// Returns, for each probe, the largest number of any consumer.
  [[nodiscard]] std::vector<std::uint64_t> not_written() const override;
  [[nodiscard]] std::vector<std::uint64_t> folded_full() const override;
  [[nodiscard]] std::vector<std::uint64_t> forgotten() override;
  /// Returns the sum over all consumers.
  [[nodiscard]] std::uint64_t unreadable() const override;

 private:
  template <class... Declared, class... Given>
  void each(void (AnswerConsumer::*take)(Declared...), const Given&... given) {
    for (AnswerConsumer* consumer : all_) (consumer->*take)(given...);
  }

  std::vector<AnswerConsumer*> all_;
};

}  // namespace v1
}  // namespace usdt
