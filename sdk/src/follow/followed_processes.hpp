// SPDX-License-Identifier: BSD-2-Clause
// Whether a process is among those that are followed, by what /proc says of it now. Private to follow/.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <vector>

#include "usdt/follow.hpp"

namespace usdt::follow {

/// True where it is one of the scope's, or (`descendants`) descends from one; or is in one of the cgroups or below it;
/// of a scope that names neither always. Reads nothing of the process that could wait for it, while it is in
/// execve(2).
[[nodiscard]] bool is_followed(const FollowScope& scope, pid_t pid);

/// The same of the cgroups alone; those of a scope without any: false.
[[nodiscard]] bool is_in_cgroup(const std::vector<std::filesystem::path>& cgroups, pid_t pid);

}  // namespace usdt::follow
