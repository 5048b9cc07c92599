// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "flags.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

/// What a trace is about, where it is not about everybody.
struct Subjects {
  std::vector<pid_t> pids;                       ///< those of --pid that live
  std::optional<std::filesystem::path> program;  ///< the command's
};

struct PlannedTrace {
  usdt::AttachPlan plan;
  Printed printed;
};

/// What the lists are about exists in the plan. Errors: invalid_argument.
[[nodiscard]] usdt::Result<void> check_prints(const Flags& flags, const usdt::AttachPlan& plan, const Printed& printed);

/// Finds what the command line names, and plans it.
[[nodiscard]] usdt::Result<PlannedTrace> plan_trace(const Flags& flags, const Subjects& subjects);

}  // namespace usdt_trace
