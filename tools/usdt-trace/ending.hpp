// SPDX-License-Identifier: BSD-2-Clause
// Errors at the end of a run, and its exit code.
#pragma once

#include "flags.hpp"
#include "usdt/result.hpp"

namespace usdt_trace {

/// Exit codes (docs/tools.md).
enum ExitCode : int { success = 0, run_time_failure = 1, usage = 2, strict_failure = 3 };

/// Says why the run failed. Returns its exit code.
[[nodiscard]] int complain(const usdt::Error& error, const Flags& flags);

}  // namespace usdt_trace
