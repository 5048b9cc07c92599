// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/surroundings.hpp"

#include <utility>

namespace usdt {
inline namespace v1 {

EventStacks Surroundings::stacks(const AskedStacks& wanted, const Event& event) {
  EventStacks stacks;
  if (wanted.kernel_depth > 0 && !event.probe().file) stacks.kernel = &kernel_stack();
  if (wanted.user_depth > 0) stacks.user = &user_stack();
  return stacks;
}

const Result<Stack>& Surroundings::kept_stack(const std::optional<Result<Stack>>& stack) {
  static const Result<Stack> no_stack = Stack();
  return stack ? *stack : no_stack;
}

LiveSurroundings::LiveSurroundings(const Question& question, StopToken over)
    : symbolizer_({.debuginfod = question.points.debuginfod, .follow_code = true, .stop_asking = std::move(over)}) {
  if (question.stacks.user_depth == 0 && !question.view.user_stacks) return;
  // If the kernel does not let us watch mappings, those in /proc have to do.
  static_cast<void>(symbolizer_.watch());
  for (const pid_t pid : question.processes.pids) symbolizer_.see(pid);
}

void LiveSurroundings::look_at(const Event& event) {
  event_ = &event;
  kernel_.reset();
  user_.reset();
  offset_ = wall_clock_.offset_at(event.timestamp());
}

const Result<Stack>& LiveSurroundings::find_kernel_stack() {
  if (!kernel_) kernel_ = symbolizer_.kernel_stack(*event_);
  return *kernel_;
}

const Result<Stack>& LiveSurroundings::find_user_stack() {
  if (!user_) user_ = symbolizer_.user_stack(*event_);
  return *user_;
}

void RecordedSurroundings::look_at(const Event&) {
  kernel_.reset();
  user_.reset();
}

const Result<Stack>& RecordedSurroundings::find_kernel_stack() {
  if (!kernel_) kernel_ = recording_.kernel_stack();
  return *kernel_;
}

const Result<Stack>& RecordedSurroundings::find_user_stack() {
  if (!user_) user_ = recording_.user_stack();
  return *user_;
}

}  // namespace v1
}  // namespace usdt
