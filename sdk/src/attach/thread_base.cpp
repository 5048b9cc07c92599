// SPDX-License-Identifier: BSD-2-Clause
#include "attach/thread_base.hpp"

#include <algorithm>

#include "btf/types.hpp"

namespace usdt::backends {
namespace {

/// Byte offset of a thread_struct's member in task_struct; 0 where BTF does not have it.
std::uint32_t offset_in_task(const btf::Types& types, std::string_view member) {
  const auto thread = types.member_offset("task_struct", "thread");
  const auto offset = types.member_offset("thread_struct", member);
  return thread && offset ? *thread + *offset : 0;
}

}  // namespace

bool is_thread_local(const usdt_arg_spec& arg) noexcept {
  return (arg.kind == USDT_ARG_MEM || arg.kind == USDT_ARG_ADDR) && (arg.flags & USDT_ARG_THREAD) != 0;
}

ThreadBase find_thread_base(const AttachPlan& plan) {
  ThreadBase base;
  base.wanted = std::ranges::any_of(
      plan.specs, [](const EncodedSpec& spec) { return std::ranges::any_of(spec.args, is_thread_local); });
  if (!base.wanted) return base;
  if (const auto types = btf::Types::load()) {
    base.fsbase = offset_in_task(**types, "fsbase");
    base.tls_array = offset_in_task(**types, "tls_array");
  }
  return base;
}

Result<void> set_thread_base(const ObjectCopy& object, const ThreadBase& base) {
  // Programs of libbpf's own header have no such constants; their specs call these arguments unreadable.
  if (!base.wanted || object.constant("usdt_thread_args").empty()) return {};
  if (auto set = object.set_constant("usdt_thread_args", std::uint32_t{1}); !set) return set;
  if (auto set = object.set_constant("usdt_thread_fsbase_offset", base.fsbase); !set) return set;
  return object.set_constant("usdt_thread_tls_offset", base.tls_array);
}

}  // namespace usdt::backends
