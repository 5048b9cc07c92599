// SPDX-License-Identifier: BSD-2-Clause
// Which threads have ended, or have become another program. Private to event/.
#pragma once

#include <cstdint>
#include <vector>

#include "sys/unique_fd.hpp"
#include "usdt/result.hpp"

namespace usdt::event {

/// Watches threads end while it lives. One that was not started, where raw tracepoints are refused, asks /proc, which
/// does not know of programs that are executed.
class ThreadEnds {
 public:
  ThreadEnds() = default;
  /// Errors: io, no_permission: what the kernel says of the programs.
  [[nodiscard]] static Result<ThreadEnds> start();

  /// Whether thread `tid` has ended since `time` (ns of CLOCK_MONOTONIC), even if another one has its number by now.
  /// `tid` is as events have it; 0, a thread that is not visible here, has not ended as far as is known.
  [[nodiscard]] bool ended_since(std::uint32_t tid, std::uint64_t time) const;
  /// Returns whether it has ended, or has become another program, since `time`.
  [[nodiscard]] bool left_since(std::uint32_t tid, std::uint64_t time) const;
  /// Whether there is a process, or thread, of this number.
  [[nodiscard]] static bool exists(std::uint32_t pid);
  /// Whether process `pid` has ended since then, with all its threads.
  [[nodiscard]] static bool process_ended_since(std::uint32_t pid, std::uint64_t time);

 private:
  sys::UniqueFd ends_ = {};
  std::vector<sys::UniqueFd> links_ = {};
};

}  // namespace usdt::event
