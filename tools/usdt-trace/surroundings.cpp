// SPDX-License-Identifier: BSD-2-Clause
#include "surroundings.hpp"

#include <utility>

namespace usdt_trace {

usdt::EventStacks Surroundings::stacks(const Flags& flags, const usdt::Event& event) {
  usdt::EventStacks stacks;
  if (flags.question.stacks.kernel_depth > 0 && !event.probe().file) stacks.kernel = &kernel_stack();
  if (flags.question.stacks.user_depth > 0) stacks.user = &user_stack();
  return stacks;
}

const usdt::Result<usdt::Stack>& Surroundings::kept_stack(const std::optional<usdt::Result<usdt::Stack>>& stack) {
  static const usdt::Result<usdt::Stack> no_stack = usdt::Stack();
  return stack ? *stack : no_stack;
}

LiveSurroundings::LiveSurroundings(const Flags& flags, usdt::StopToken over)
    : symbolizer_({.debuginfod = flags.question.points.debuginfod, .stop_asking = std::move(over)}) {
  if (flags.question.stacks.user_depth == 0 && !flags.question.view.user_stacks) return;
  // Where the kernel does not let us, what /proc has makes do.
  static_cast<void>(symbolizer_.watch());
  for (const pid_t pid : flags.question.processes.pids) symbolizer_.see(pid);
}

void LiveSurroundings::look_at(const usdt::Event& event) {
  event_ = &event;
  kernel_.reset();
  user_.reset();
  offset_ = wall_clock_.offset_at(event.timestamp());
}

const usdt::Result<usdt::Stack>& LiveSurroundings::find_kernel_stack() {
  if (!kernel_) kernel_ = symbolizer_.kernel_stack(*event_);
  return *kernel_;
}

const usdt::Result<usdt::Stack>& LiveSurroundings::find_user_stack() {
  if (!user_) user_ = symbolizer_.user_stack(*event_);
  return *user_;
}

void RecordedSurroundings::look_at(const usdt::Event&) {
  kernel_.reset();
  user_.reset();
}

const usdt::Result<usdt::Stack>& RecordedSurroundings::find_kernel_stack() {
  if (!kernel_) kernel_ = recording_.kernel_stack();
  return *kernel_;
}

const usdt::Result<usdt::Stack>& RecordedSurroundings::find_user_stack() {
  if (!user_) user_ = recording_.user_stack();
  return *user_;
}

}  // namespace usdt_trace
