// SPDX-License-Identifier: BSD-2-Clause
// What a question has to say while it is asked for ever. Whoever starts programs all the time would fill the log.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "notices.hpp"

namespace usdt_agent {

/// Prints notices: the first twenty at once, then one a second, which says how many were left out. Beginning and end
/// are always said.
class BoundedNotices final : public usdt::AnswerConsumer {
 public:
  explicit BoundedNotices(const usdt_trace::Flags& flags) : notices_(flags, [] { return false; }) {}

  void begin(const usdt::AnswerStart& start) override { notices_.begin(start); }
  void notice(const usdt::SessionNotice& notice) override;
  void end(const usdt::AnswerEnd& end) override;
  bool in_no_hurry() const override { return true; }

  /// Says how many notices were left out, if it is time to. To be called now and then.
  void say_what_was_left_out();
  /// Returns what the question waits for, as it said it; empty: it does not.
  [[nodiscard]] const std::string& waits_for() const noexcept { return waits_for_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// Whether another one may be printed now.
  [[nodiscard]] bool take_room();
  void say_left_out();

  usdt_trace::Notices notices_;
  std::string waits_for_ = {};
  std::chrono::duration<double> room_{20};  ///< notices; one more each second
  Clock::time_point looked_ = Clock::now();
  std::size_t left_out_ = 0;
  usdt::SessionNotice last_ = {};  ///< of those
};

}  // namespace usdt_agent
