// SPDX-License-Identifier: BSD-2-Clause
// Whose hits count.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "proc/thread_group.hpp"
#include "usdt/plan.hpp"

namespace usdt {
inline namespace v1 {

Result<OneProcess> OneProcess::of(pid_t pid) {
  if (pid <= 0) return fail(ErrorKind::invalid_argument, fmt::format("{}: not a process id", pid));
  // A thread's number, taken for a process's, would have no hit, or those of its thread alone.
  const pid_t process = proc::thread_group_of(pid);
  if (process != 0 && process != pid && proc::thread_group_of(::getpid()) == ::getpid())
    return fail(ErrorKind::invalid_argument, fmt::format("{} is a thread of process {}", pid, process));
  return OneProcess(pid);
}

Result<Processes> Processes::of(std::vector<pid_t> pids) {
  if (pids.empty()) return fail(ErrorKind::invalid_argument, "no process named");
  if (pids.size() > kMost)
    return fail(ErrorKind::limit, fmt::format("{} processes: at most {} at once", pids.size(), kMost));
  for (const pid_t pid : pids) {
    TRY(OneProcess::of(pid));
    if (std::ranges::count(pids, pid) > 1)
      return fail(ErrorKind::invalid_argument, fmt::format("process {} is named twice", pid));
  }
  return Processes(std::move(pids));
}

std::vector<pid_t> pids_of(const Scope& scope) {
  if (const auto* one = std::get_if<OneProcess>(&scope)) return {one->pid()};
  if (const auto* several = std::get_if<Processes>(&scope)) return several->pids();
  return {};
}

}  // namespace v1
}  // namespace usdt
