// SPDX-License-Identifier: BSD-2-Clause
// Events in a recording instead of lines.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "output.hpp"

namespace usdt_trace {

class RecordOutput final : public Output {
 public:
  RecordOutput(const usdt::Tracer& tracer, const Printed& printed, const Flags& flags, Surroundings& around,
               usdt::tools::Stream& out);

  /// What was said to people.
  void notice(const std::string& text);
  /// An account now and then, for those who read what is left of a recording that was cut. Due every ten seconds.
  [[nodiscard]] bool account_due() const;
  void account(const Summary& summary);

 protected:
  void look_up(const usdt::AttachPlan&) override {}
  /// A notice says it.
  void write_followed(const Followed&) override {}
  void write_event(const usdt::Event& event) override;
  void write_summary(const Summary& summary) override;
  void print_due() override;

 private:
  using Clock = std::chrono::steady_clock;

  bool kernel_stacks_, user_stacks_;
  bool strict_;
  Clock::time_point accounted_ = Clock::now();
  std::optional<usdt::RecordingWriter> writer_;
};

/// What a recording has of how its maker showed events, for a replay that is not told otherwise.
struct RecordedView {
  Printed printed = {};
  std::string where = {};
  std::uint32_t kernel_stack_depth = 0, user_stack_depth = 0;
};
/// Errors: malformed.
[[nodiscard]] usdt::Result<RecordedView> recorded_view(const usdt::Recording& recording);

}  // namespace usdt_trace
