// SPDX-License-Identifier: BSD-2-Clause
// Code that processes no longer run from their files, as where text was moved to huge pages: a breakpoint in the file
// is not in that memory, and there are no hits. Threads: any.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "usdt/plan.hpp"

namespace usdt {
inline namespace v1 {

/// A sentence for each process of `pids` and file of `plan` where the process has other memory in the place of some of
/// the plan's sites. Processes that may not be looked at, or have ended, are passed over; so are files that were let
/// go.
[[nodiscard]] std::vector<std::string> moved_code(const AttachPlan& plan, std::span<const pid_t> pids);

}  // namespace v1
}  // namespace usdt
