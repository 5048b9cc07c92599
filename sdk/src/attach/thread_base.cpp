// SPDX-License-Identifier: BSD-2-Clause
#include "attach/thread_base.hpp"

#include <algorithm>

#include "btf/kernel_btf.hpp"

namespace usdt::backends {
namespace {

/// Byte offset of a thread_struct's member in task_struct; 0 where BTF does not have it.
std::uint32_t offset_in_task(const kernel_btf::KernelBtf& types, std::string_view member) {
  const auto thread = types.member_offset("task_struct", "thread");
  const auto offset = types.member_offset("thread_struct", member);
  return thread && offset ? *thread + *offset : 0;
}

}  // namespace

bool is_thread_local(const usdt_arg_spec& arg) noexcept {
  return (arg.kind == USDT_ARG_MEM || arg.kind == USDT_ARG_ADDR) && (arg.flags & USDT_ARG_THREAD) != 0;
}

bool has_thread_locals(const AttachPlan& plan) noexcept {
  return std::ranges::any_of(plan.specs,
                             [](const EncodedSpec& spec) { return std::ranges::any_of(spec.args, is_thread_local); });
}

Result<bool> set_thread_base(BpfObject& object) {
  if (auto set = object.set_constant("usdt_thread_args", std::uint32_t{1}); !set) {
    if (set.error().kind == ErrorKind::not_found) return false;
    return fail(set.error());
  }
  const auto types = kernel_btf::KernelBtf::load();
  if (!types) return true;
  if (auto set = object.set_constant("usdt_thread_fsbase_offset", offset_in_task(*types, "fsbase")); !set)
    return fail(set.error());
  if (auto set = object.set_constant("usdt_thread_tls_offset", offset_in_task(*types, "tls_array")); !set)
    return fail(set.error());
  return true;
}

}  // namespace usdt::backends
