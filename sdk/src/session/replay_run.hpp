// SPDX-License-Identifier: BSD-2-Clause
// Questions about recordings, answered one after the other.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "usdt/answers.hpp"
#include "usdt/question.hpp"
#include "usdt/replay.hpp"

namespace usdt::session {

/// Feeds the consumers of each question from its recording.
class ReplayRun {
 public:
  /// `question` lives as long.
  void add(const Question& question, std::vector<AnswerConsumer*> consumers, std::string place) {
    parts_.emplace_back(question, std::move(consumers), std::move(place));
  }

  /// Goes on with the question at hand. False: there are no more answers. Errors: those of QuestionReplay; the question
  /// has no more answers then.
  [[nodiscard]] Result<bool> step();
  /// Ends what is at hand with its account.
  void finish();

 private:
  struct Part {
    Part(const Question& asked, std::vector<AnswerConsumer*> consumers, std::string where)
        : question(asked), consumer(std::move(consumers)), place(std::move(where)) {}

    const Question& question;
    ConsumerGroup consumer;
    std::string place;
    std::optional<QuestionReplay> replay = {};  ///< from the first step on
  };
  [[nodiscard]] static Result<bool> step(Part& part);
  static void finish(Part& part);
  static void tell_notices(Part& part);

  std::deque<Part> parts_ = {};  ///< the first is at hand
};

}  // namespace usdt::session
