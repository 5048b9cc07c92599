// SPDX-License-Identifier: BSD-2-Clause
// Code that processes no longer run from their files, as where text was moved to huge pages: a breakpoint in the file
// is not in that memory, and there are no hits. moved_code() finds such processes.
//     for (const std::string& warning : usdt::moved_code(plan, pids)) print(warning);
// Threads: any; the plan is only read.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "usdt/plan.hpp"

namespace usdt {
inline namespace v1 {

/// Returns a sentence for each process of `pids` and file of `plan` where the process has other memory in the place of
/// some of the plan's sites. Processes that may not be looked at, or have ended, are passed over; so are files that
/// were detached for good (Link::let_go()).
[[nodiscard]] std::vector<std::string> moved_code(const AttachPlan& plan, std::span<const pid_t> pids);

}  // namespace v1
}  // namespace usdt
