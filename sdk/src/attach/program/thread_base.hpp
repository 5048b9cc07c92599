// SPDX-License-Identifier: BSD-2-Clause
// Tells BPF programs what they need to read thread-local arguments (usdt_thread_base() in usdt/bpf/memory.h).
#pragma once

#include "usdt/bpf/constants.h"
#include "usdt/plan.hpp"

namespace usdt::backends {

/// Finds where this kernel keeps a thread's segment base, if an argument of the plan's starts there. Without BTF those
/// arguments are -ENODATA at each hit.
void set_thread_base(usdt_kernel_constants& kernel, const AttachPlan& plan);

/// Where a task has the thread pointer of a 64-bit thread, as an offset in task_struct; 0: this kernel does not say.
[[nodiscard]] std::uint32_t find_thread_pointer();

}  // namespace usdt::backends
