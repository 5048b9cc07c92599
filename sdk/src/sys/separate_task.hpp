// SPDX-License-Identifier: BSD-2-Clause
// Work on uprobes that a signal to this process cannot cut short.
//
// Linux gives up writing to another process's memory once the writing task has a fatal signal pending
// (__get_user_pages() returns -EINTR). A tracer that is killed while it puts breakpoints in place, or removes them in a
// system call, therefore leaves them, and the semaphores they raised, in the traced programs for ever ("failed to
// unregister, leaking uprobe", kernel/events/uprobes.c). Two tasks are safe from that: one that the signal is not sent
// to, and one that is exiting already, whose descriptors are closed when the signal has been taken.
#pragma once

#include <span>

namespace usdt::sys {

/// Makes one system call in a task of its own, which shares this process's memory and descriptors and receives none of
/// its signals, nor those of this process's cgroup where it can leave that (root_cgroup.hpp); the calling thread waits
/// for it. Should this process be killed meanwhile, the call runs to its end, and the task's exit then closes what it
/// opened. If no task can be made (RLIMIT_NPROC), the calling thread makes the call. Returns the result, or a negative
/// errno.
template <class... Words>
[[nodiscard]] long call_in_separate_task(long number, Words... words) noexcept;

/// Closes `descriptors`. The last reference to each is dropped by tasks that exit, never by a system call, at whatever
/// moment this process is killed; returns when they have. Several tasks at once share the waiting for grace periods of
/// the kernel. Meant for links and perf events of uprobes; others may be closed as usual.
void close_in_exiting_tasks(std::span<const int> descriptors) noexcept;

/// The system call as words of the machine. Private to call_in_separate_task().
struct SeparateCall {
  long number = 0;
  long words[6] = {};
  long result = 0;
  bool made = false;  ///< else the task was killed before it came to it
};
void make_in_separate_task(SeparateCall& call) noexcept;

template <class... Words>
long call_in_separate_task(long number, Words... words) noexcept {
  static_assert(sizeof...(Words) <= 6);
  SeparateCall call{.number = number, .words = {(long)(words)...}};
  make_in_separate_task(call);
  return call.result;
}

}  // namespace usdt::sys
