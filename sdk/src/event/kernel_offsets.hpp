// SPDX-License-Identifier: BSD-2-Clause
// Where this kernel keeps what the stock programs look at, by its BTF: the offsets of stock_constants.h. Private to the
// library.
#pragma once

#include "usdt/bpf/stock_constants.h"
#include "usdt/result.hpp"

namespace usdt::event {

/// Finds where the kernel keeps the return addresses that return probes replaced. Without BTF they stay unknown, which
/// stacks then say.
[[nodiscard]] usdt_return_offsets find_replaced_returns();

/// Finds which thread of a number it is, and whose child its process is (bpf/trace/threads.h).
[[nodiscard]] usdt_thread_offsets find_threads();

/// Finds what tells the pointers of threads that the kernel has late, as it does on some machines. Errors: as
/// find_image().
[[nodiscard]] Result<usdt_late_pointer_offsets> find_late_pointer();

/// Finds whether threads end with their process (bpf/ends.bpf.c). Without BTF it stays unknown.
[[nodiscard]] usdt_thread_ends_constants find_ends();

/// Finds what tells which program a process executes. Errors: not_supported (the kernel's BTF lacks it), those of
/// reading it.
[[nodiscard]] Result<usdt_image_offsets> find_image();

/// Finds where it is said whose a task is (bpf/trace/owner.h), and makes the programs look: only hits of tasks of this
/// user and group count. Errors: not_supported (a kernel that does not say so).
[[nodiscard]] Result<usdt_owner_constants> count_owner_only(unsigned uid, unsigned gid);

}  // namespace usdt::event
