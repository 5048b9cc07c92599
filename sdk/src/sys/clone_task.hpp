// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace usdt::sys {

/// Starts a task that shares this process's memory (CLONE_VM) and runs `run`, which must not return, on `stack`.
/// `flags`: of clone(2), without a termination signal. `cgroup`: a descriptor of the one that it is to be in (5.7); -1:
/// ours. Returns its number, or -1.
///
/// It asks the kernel itself and not the C library's clone(): in a program that was built with ThreadSanitizer that is
/// a function of the sanitizer, which takes every new task for a fork. It then forgets the program's threads and gives
/// back locks twice, in the memory that both share, and the program stands still sooner or later. If the kernel
/// refuses, such a program gets no task.
[[nodiscard]] pid_t clone_task(int (*run)(void*), std::span<std::byte> stack, std::uint64_t flags, void* argument,
                               int cgroup = -1) noexcept;

}  // namespace usdt::sys
