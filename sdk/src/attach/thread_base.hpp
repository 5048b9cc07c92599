// SPDX-License-Identifier: BSD-2-Clause
// What BPF programs have to know to read thread-local arguments (bpf/include/usdt/bpf/thread.h).
#pragma once

#include "usdt/bpf_object.hpp"
#include "usdt/plan.hpp"

namespace usdt::backends {

/// True for an argument whose address starts at the thread's segment base.
[[nodiscard]] bool is_thread_local(const usdt_arg_spec& arg) noexcept;
/// True if `plan` has such an argument.
[[nodiscard]] bool has_thread_locals(const AttachPlan& plan) noexcept;

/// Tells `object`, before it is loaded, where this kernel keeps the thread's segment base. Costs the 3 ms of reading
/// kernel BTF; without BTF those arguments are -ENODATA at each hit. False: the program was built with headers that do
/// not know such arguments and would read them elsewhere, so that they must not reach it. Errors: those of
/// set_constant().
[[nodiscard]] Result<bool> set_thread_base(BpfObject& object);

}  // namespace usdt::backends
