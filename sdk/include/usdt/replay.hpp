// SPDX-License-Identifier: BSD-2-Clause
// Answers a question about the events of a recording, as a live trace answers it about the hits of running programs.
//
//     auto replay = usdt::QuestionReplay::open(question);  // question.recording.replay names the file
//     replay->begin(consumer);
//     while (auto more = replay->step()) if (!*more) break;
//     replay->finish();
//     consumer.summary(replay->summary());
//
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "usdt/account.hpp"
#include "usdt/answers.hpp"
#include "usdt/plan.hpp"
#include "usdt/print_list.hpp"
#include "usdt/question.hpp"
#include "usdt/question_plan.hpp"
#include "usdt/recording.hpp"
#include "usdt/result.hpp"
#include "usdt/surroundings.hpp"

namespace usdt {
inline namespace v1 {

/// Feeds an AnswerConsumer from a recording.
class QuestionReplay {
 public:
  /// Opens the recording of a complete question. A question that names no points means all of the recording's; one
  /// without print lists has those of the recording. Errors: as Recording::open(); not_found (it has none of the
  /// points); invalid_argument and syntax (it lacks what is asked for).
  [[nodiscard]] static Result<QuestionReplay> open(Question question);
  QuestionReplay(QuestionReplay&&) noexcept;
  QuestionReplay& operator=(QuestionReplay&&) noexcept;
  ~QuestionReplay();

  /// The question, with what the recording says of stacks, limits, beginning and, where nothing else is asked, `where`.
  [[nodiscard]] const Question& question() const noexcept;
  /// The recording that events come out of: who made it, and the account of then.
  [[nodiscard]] const Recording& recording() const noexcept;
  /// The recording's plan, which lives as long as this.
  [[nodiscard]] const AttachPlan& plan() const noexcept;
  /// Returns the lists, and by which of them each probe is shown.
  [[nodiscard]] const Printed& printed() const noexcept;
  /// Returns the surroundings of the event that the consumer has just been given.
  [[nodiscard]] Surroundings& surroundings() noexcept;
  /// Notices since the last call: at first by whom the recording was made, and what was said then.
  [[nodiscard]] std::vector<SessionNotice> take_notices();

  /// Begins to feed `consumer`, which lives as long as this.
  void begin(AnswerConsumer& consumer);
  /// Takes the next event. False: there is none. Errors: as Recording::next().
  [[nodiscard]] Result<bool> step();
  /// Gives the consumer what is there only at the end: the table, the last heat slice, or the slowest.
  void finish();
  /// The account of all hits so far. Hits of which there is no event have the reason that they had in the trace.
  [[nodiscard]] SessionSummary summary() const;
  /// How many events the consumer was given.
  [[nodiscard]] std::uint64_t given() const noexcept;
  /// How many there are beyond AskedLimits::max_events.
  [[nodiscard]] std::uint64_t beyond() const noexcept;

 private:
  struct Impl;
  explicit QuestionReplay(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
