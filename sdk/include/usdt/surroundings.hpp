// SPDX-License-Identifier: BSD-2-Clause
// Facts that are shown with an event and are not in it: the time of day, and names of stacks. A live trace asks the
// running system, a replay the recording: whoever shows events need not know which. begin() sets the event that the
// questions are about; one thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "usdt/clock.hpp"
#include "usdt/event.hpp"
#include "usdt/question.hpp"
#include "usdt/recording.hpp"
#include "usdt/slowest.hpp"
#include "usdt/stop.hpp"
#include "usdt/symbolizer.hpp"
#include "usdt/table.hpp"

namespace usdt {
inline namespace v1 {

/// Answers questions about one event at a time.
class Surroundings {
 public:
  Surroundings() = default;
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;
  virtual ~Surroundings() = default;

  /// Begins with `event`: questions are about it, from several views perhaps, until the next begin().
  void begin(const Event& event) {
    kept_ = nullptr;
    look_at(event);
  }
  /// Begins with an event that was kept together with all that is known about it. It lives until the next begin().
  void begin(const KeptEvent& event) { kept_ = &event; }
  /// Returns how much the time of day is ahead of event_clock() at the event, ns.
  [[nodiscard]] std::int64_t wall_offset() { return kept_ ? kept_->wall_offset : find_wall_offset(); }
  /// Returns the kernel's stack at the event, named.
  [[nodiscard]] const Result<Stack>& kernel_stack() {
    return kept_ ? kept_stack(kept_->kernel_stack) : find_kernel_stack();
  }
  /// Returns the process's stack at the event, named.
  [[nodiscard]] const Result<Stack>& user_stack() { return kept_ ? kept_stack(kept_->user_stack) : find_user_stack(); }
  /// Returns the stacks that are wanted with `event`, the one at hand.
  [[nodiscard]] EventStacks stacks(const AskedStacks& wanted, const Event& event);

 private:
  static const Result<Stack>& kept_stack(const std::optional<Result<Stack>>& stack);
  virtual void look_at(const Event& event) = 0;
  [[nodiscard]] virtual std::int64_t find_wall_offset() = 0;
  [[nodiscard]] virtual const Result<Stack>& find_kernel_stack() = 0;
  [[nodiscard]] virtual const Result<Stack>& find_user_stack() = 0;

  const KeptEvent* kept_ = nullptr;
};

/// Asks the running system, about events of a trace.
class LiveSurroundings final : public Surroundings {
 public:
  /// Makes the surroundings of a trace of `question`. Once `over` is set, no server is waited for any more.
  explicit LiveSurroundings(const Question& question, StopToken over = {});
  /// Gives names to the stacks among the keys of rows.
  void name(std::vector<TableRow>& rows, const AttachPlan& plan) { symbolizer_.name(rows, plan); }
  /// Finds the interpreter of process `pid`, which has just begun, before its first event.
  void expect(pid_t pid) { symbolizer_.expect(pid); }
  /// Reads what may be gone when `event`, which is kept, is shown.
  void see(const Event& event) { symbolizer_.see(event); }

 private:
  void look_at(const Event& event) override;
  std::int64_t find_wall_offset() override { return offset_; }
  const Result<Stack>& find_kernel_stack() override;
  const Result<Stack>& find_user_stack() override;

  const Event* event_ = nullptr;
  WallClock wall_clock_;
  std::int64_t offset_ = 0;  ///< of the event
  std::optional<Result<Stack>> kernel_, user_;
  Symbolizer symbolizer_;
};

/// Knows what a recording has, about the event it gave last.
class RecordedSurroundings final : public Surroundings {
 public:
  /// `recording` has to live as long.
  explicit RecordedSurroundings(const Recording& recording) : recording_(recording) {}

 private:
  void look_at(const Event& event) override;
  std::int64_t find_wall_offset() override { return recording_.wall_offset(); }
  const Result<Stack>& find_kernel_stack() override;
  const Result<Stack>& find_user_stack() override;

  const Recording& recording_;
  std::optional<Result<Stack>> kernel_, user_;
};

}  // namespace v1
}  // namespace usdt
