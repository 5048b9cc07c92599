// SPDX-License-Identifier: BSD-2-Clause
// Which threads have ended, or have become another program. Private to event/.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sys/unique_fd.hpp"
#include "usdt/bpf/event.h"
#include "usdt/result.hpp"

namespace usdt::event {

/// Watches threads end while it lives. One that was not started, where raw tracepoints are refused, asks /proc, which
/// does not know of programs that are executed.
class ThreadEnds {
 public:
  ThreadEnds() = default;
  /// Errors: io, no_permission: what the kernel says of the programs.
  [[nodiscard]] static Result<ThreadEnds> start();

  /// Names the process with which the trace ends (TraceOptions::ends_with): what ends with it, and not before it, has
  /// not ended as far as these are asked.
  void set_last_process(pid_t pid) noexcept { last_process_ = static_cast<std::uint32_t>(pid); }

  /// Returns when that process began to end, with all its threads; nothing: it lives, or nobody saw it end.
  [[nodiscard]] std::optional<std::uint64_t> end_of_last_process() const;

  /// Whether the thread of an event has ended since then, even if another one has its number by now. A thread that is
  /// not visible here has not ended as far as is known.
  [[nodiscard]] bool thread_ended(const usdt_event& event) const;
  /// Whether it has ended, or has become another program, since then.
  [[nodiscard]] bool thread_left(const usdt_event& event) const;
  /// Whether its process has ended since then, with all its threads.
  [[nodiscard]] bool process_ended(const usdt_event& event) const;
  /// Whether there is a process, or thread, of this number.
  [[nodiscard]] static bool exists(std::uint32_t pid);

 private:
  [[nodiscard]] std::optional<usdt_thread_end> end_of(std::uint32_t tid) const;
  [[nodiscard]] bool has_ended(const usdt_event& event, const std::optional<usdt_thread_end>& end) const;

  std::uint32_t last_process_ = 0;
  sys::UniqueFd ends_ = {};
  std::vector<sys::UniqueFd> links_ = {};
};

}  // namespace usdt::event
