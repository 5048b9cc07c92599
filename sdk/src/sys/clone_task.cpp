// SPDX-License-Identifier: BSD-2-Clause
#include "sys/clone_task.hpp"

#include <linux/sched.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>

#include "sys/direct_call.hpp"

// Defined by the run-time library of ThreadSanitizer, where the program has it.
extern "C" void __tsan_init() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier): its name

namespace usdt::sys {
namespace {

bool has_thread_sanitizer() noexcept { return &__tsan_init != nullptr; }

}  // namespace

pid_t clone_task(int (*run)(void*), std::span<std::byte> stack, std::uint64_t flags, void* argument,
                 int cgroup) noexcept {
  clone_args args{};
  args.flags = flags;
  args.stack = reinterpret_cast<std::uintptr_t>(stack.data());
  args.stack_size = stack.size();
  if (cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup);
  }
  const long task = direct_clone3(args, run, argument);
  if (task >= 0) return static_cast<pid_t>(task);
  // Containers refuse a system call that their filter cannot look into.
  if (cgroup >= 0 || has_thread_sanitizer()) return -1;
  return ::clone(run, stack.data() + stack.size(), static_cast<int>(flags), argument);
}

}  // namespace usdt::sys
