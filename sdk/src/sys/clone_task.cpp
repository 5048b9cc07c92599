// SPDX-License-Identifier: BSD-2-Clause
#include "sys/clone_task.hpp"

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

// Defined by the run-time library of ThreadSanitizer, where the program has it.
extern "C" void __tsan_init() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier): its name

namespace usdt::sys {
namespace {

/// clone3(2), of which the C library has no function. The new task begins on its own stack, so that it cannot return
/// from here. The frame pointer, which optimised code has other values in, is cleared last.
long clone3(const clone_args& args, int (*run)(void*), void* argument) noexcept {
  long result;
#if defined(__x86_64__)
  asm volatile(
      "syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\t"
      "mov %[argument], %%rdi\n\tmov %[run], %%rax\n\txor %%ebp, %%ebp\n\tcall *%%rax\n\tud2\n1:"
      : "=a"(result)
      : "0"(SYS_clone3), "D"(&args), "S"(sizeof(args)), [run] "r"(run), [argument] "r"(argument)
      : "rcx", "r11", "memory", "cc");
#elif defined(__i386__)
  asm volatile(
      "int $0x80\n\ttest %%eax, %%eax\n\tjnz 1f\n\t"
      "sub $12, %%esp\n\tpush %%edi\n\tcall *%%esi\n\tud2\n1:"
      : "=a"(result)
      : "0"(SYS_clone3), "b"(&args), "c"(sizeof(args)), "S"(run), "D"(argument)
      : "memory", "cc");
#elif defined(__aarch64__)
  register long number asm("x8") = SYS_clone3;
  register long x0 asm("x0") = reinterpret_cast<long>(&args);
  register long x1 asm("x1") = sizeof(args);
  asm volatile(
      "svc #0\n\tcbnz x0, 1f\n\t"
      "mov x0, %[argument]\n\tmov x9, %[run]\n\tmov x29, xzr\n\tblr x9\n\tbrk #0\n1:"
      : "+r"(x0)
      : "r"(number), "r"(x1), [run] "r"(run), [argument] "r"(argument)
      : "memory", "cc");
  result = x0;
#endif
  return result;
}

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
  const long task = clone3(args, run, argument);
  if (task >= 0) return static_cast<pid_t>(task);
  // Containers refuse a system call that their filter cannot look into.
  if (cgroup >= 0 || has_thread_sanitizer()) return -1;
  return ::clone(run, stack.data() + stack.size(), static_cast<int>(flags), argument);
}

}  // namespace usdt::sys
