// SPDX-License-Identifier: BSD-2-Clause
// What tells the program that a process executes from one that it executes later, and from those of other processes.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

#include "usdt/result.hpp"

namespace usdt::proc {

/// Numbers of a process's memory, as the kernel's mm_struct has them.
struct ProcessImage {
  /// start_code, end_code, start_stack and arg_start: two executions of a program differ in them, but where addresses
  /// are not chosen at random. A process that was forked has those of its parent.
  std::array<std::uint64_t, 4> words{};
  std::uint64_t code_pages = 0;  ///< pages that are mapped as code: exec_vm
  std::uint64_t began = 0;       ///< when the process did, in clock ticks since the machine did
  friend bool operator==(const ProcessImage&, const ProcessImage&) = default;
};

/// Reads the numbers of process `pid`. Errors: not_found (it is gone, or a thread of the kernel), no_permission
/// (PTRACE_MODE_READ is asked for), io.
[[nodiscard]] Result<ProcessImage> image_of(pid_t pid);

}  // namespace usdt::proc
