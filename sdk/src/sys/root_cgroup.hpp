// SPDX-License-Identifier: BSD-2-Clause
// A task that the end of this process's cgroup does not concern.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace usdt::sys {

/// A task at the root of the cgroup tree, as far as this process sees the tree: who kills the cgroup of this process
/// (cgroup.kill, a service manager that ends a unit) does not kill it. It runs `run`, which must not return, on
/// `stack`. `flags`: of clone(2), without a termination signal. Its number, or -1 where there is no such place (5.7,
/// cgroup v2, write access to its root) or this process is there itself. Linux 6.18 kills the task at once where the
/// cgroup of this process was killed before: cgroup_post_fork() then takes the count of such kills of one cgroup for
/// that of the other.
[[nodiscard]] pid_t clone_into_root_cgroup(int (*run)(void*), std::span<std::byte> stack, std::uint64_t flags,
                                           void* argument) noexcept;

}  // namespace usdt::sys
