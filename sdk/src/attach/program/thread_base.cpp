// SPDX-License-Identifier: BSD-2-Clause
#include "program/thread_base.hpp"

#include <algorithm>

#include "arch/arch.hpp"
#include "btf/types.hpp"

namespace usdt::backends {
namespace {

/// Byte offset of a thread_struct's member in task_struct; 0 where BTF does not have it.
std::uint32_t offset_in_task(const btf::Types& types, std::string_view member) {
  const auto thread = types.member_offset("task_struct", "thread");
  const auto offset = types.member_offset("thread_struct", member);
  return thread && offset ? *thread + *offset : 0;
}

bool is_thread_local(const usdt_arg_spec& arg) noexcept {
  const int kind = USDT_ARG_KIND(arg.kind);
  return (kind == USDT_ARG_MEM || kind == USDT_ARG_ADDR) && (arg.flags & USDT_ARG_THREAD) != 0;
}

bool has_thread_local(const EncodedSpec& spec) { return std::ranges::any_of(spec.args, is_thread_local); }

}  // namespace

std::uint32_t find_thread_pointer() {
  const auto types = btf::Types::load();
  return types ? offset_in_task(**types, "fsbase") : 0;
}

void set_thread_base(usdt_kernel_constants& kernel, const AttachPlan& plan) {
  if (std::ranges::none_of(plan.specs, has_thread_local) && !plan.contexts) return;
  kernel.thread_args = 1;
  const auto types = btf::Types::load();
  if (!types) return;
  kernel.thread_fsbase_offset = offset_in_task(**types, arch::for_machine(plan.kernel_machine).thread_blocks.pointer);
  kernel.thread_tls_offset = offset_in_task(**types, "tls_array");
}

}  // namespace usdt::backends
