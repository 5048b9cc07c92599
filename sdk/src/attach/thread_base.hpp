// SPDX-License-Identifier: BSD-2-Clause
// What BPF programs have to know to read thread-local arguments (bpf/include/usdt/bpf/thread.h).
#pragma once

#include <cstdint>

#include "attach/object_copy.hpp"
#include "usdt/plan.hpp"

namespace usdt::backends {

/// Where this kernel keeps a thread's segment base: byte offsets in task_struct, 0 where its BTF does not say.
struct ThreadBase {
  bool wanted = false;  ///< some argument of the plan is thread-local
  std::uint32_t fsbase = 0;
  std::uint32_t tls_array = 0;
};

/// True for an argument whose address starts at the thread's segment base.
[[nodiscard]] bool is_thread_local(const usdt_arg_spec& arg) noexcept;

/// What the programs of `plan` need. Costs the 3 ms of reading kernel BTF where it has such an argument; without BTF
/// those arguments are -ENODATA at each hit.
[[nodiscard]] ThreadBase find_thread_base(const AttachPlan& plan);
/// Tells one copy of the program, before it is loaded. Errors: those of set_constant().
[[nodiscard]] Result<void> set_thread_base(const ObjectCopy& object, const ThreadBase& base);

}  // namespace usdt::backends
