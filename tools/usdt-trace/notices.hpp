// SPDX-License-Identifier: BSD-2-Clause
// Texts for people beside the answers: notices while a trace runs, and its account.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "flags.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

/// Prints to standard error.
class Notices final : public usdt::AnswerConsumer {
 public:
  /// How the trace ended, as far as its answers do not tell.
  struct Ending {
    bool losses = false;        ///< hits that have no event although --strict wants one of each
    bool cut = false;           ///< the recording that was replayed is not whole
    bool nothing_left = false;  ///< AnswerEnd::nothing_left
  };
  /// `command_ended`: whether the command has ended by itself.
  Notices(const Flags& flags, std::function<bool()> command_ended)
      : flags_(flags), command_ended_(std::move(command_ended)) {}

  void begin(const usdt::AnswerStart& start) override { flags_.question = start.question; }
  void notice(const usdt::SessionNotice& notice) override;
  void end(const usdt::AnswerEnd& end) override;
  bool in_no_hurry() const override { return true; }

  /// Nothing: there was no end, as nothing was traced.
  [[nodiscard]] const std::optional<Ending>& how_it_ended() const noexcept { return ending_; }

 private:
  Flags flags_;  ///< with the question as it is answered
  std::function<bool()> command_ended_;
  std::optional<Ending> ending_;
};

}  // namespace usdt_trace
