// SPDX-License-Identifier: BSD-2-Clause
// System calls without the C library: all assembly of this stage.
#pragma once

#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace usdt::sys {

/// Makes a system call in place. The result, or a negative errno; errno stays as it is.
///
/// It is for tasks beside the calling process that help it to trace. They have numbers of their own, so that a trace of
/// everybody does not know them for the tracer: what they would do in functions of the C library would be hits.
template <class... Words>
[[gnu::always_inline]] inline long direct_call(long number, Words... words) noexcept {
  static_assert(sizeof...(Words) <= 6);
  const long w[7] = {(long)(words)...};  // NOLINT: pointers and integers of all kinds
#if defined(__x86_64__)
  long result;
  register long fourth asm("r10") = w[3];  // cppcheck-suppress constStatement
  register long fifth asm("r8") = w[4];    // cppcheck-suppress constStatement
  register long sixth asm("r9") = w[5];    // cppcheck-suppress constStatement
  asm volatile("syscall"
               : "=a"(result)
               : "0"(number), "D"(w[0]), "S"(w[1]), "d"(w[2]), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory", "cc");
  return result;
#elif defined(__aarch64__)
  register long eighth asm("x8") = number;
  register long x0 asm("x0") = w[0];
  register long x1 asm("x1") = w[1];
  register long x2 asm("x2") = w[2];
  register long x3 asm("x3") = w[3];
  register long x4 asm("x4") = w[4];
  register long x5 asm("x5") = w[5];
  asm volatile("svc #0" : "+r"(x0) : "r"(eighth), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
  return x0;
#elif defined(__riscv) && __riscv_xlen == 64
  register long eighth asm("a7") = number;
  register long a0 asm("a0") = w[0];
  register long a1 asm("a1") = w[1];
  register long a2 asm("a2") = w[2];
  register long a3 asm("a3") = w[3];
  register long a4 asm("a4") = w[4];
  register long a5 asm("a5") = w[5];
  asm volatile("ecall" : "+r"(a0) : "r"(eighth), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5) : "memory");
  return a0;
#elif defined(__i386__)
  // The sixth word is in the frame pointer, which the compiler may need: all come from memory that eax points to.
  const long all[7] = {w[0], w[1], w[2], w[3], w[4], w[5], number};
  const long* from = all;
  long result;
  asm volatile(
      "push %%ebp\n\tpush %%ebx\n\t"
      "mov (%%eax), %%ebx\n\tmov 4(%%eax), %%ecx\n\tmov 8(%%eax), %%edx\n\tmov 12(%%eax), %%esi\n\t"
      "mov 16(%%eax), %%edi\n\tmov 20(%%eax), %%ebp\n\tmov 24(%%eax), %%eax\n\tint $0x80\n\t"
      "pop %%ebx\n\tpop %%ebp"
      : "=a"(result)
      : "0"(from), "m"(all)
      : "ecx", "edx", "esi", "edi", "memory", "cc");
  return result;
#else
  const int before = errno;
  const long result = ::syscall(number, w[0], w[1], w[2], w[3], w[4], w[5]);
  const long error = errno;
  errno = before;
  return result < 0 ? -error : result;
#endif
}

/// clone3(2), of which the C library has no function. The new task begins on its own stack, so that it cannot return
/// from here. The frame pointer, which optimised code has other values in, is cleared last.
inline long direct_clone3(const clone_args& args, int (*run)(void*), void* argument) noexcept {
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
#elif defined(__riscv) && __riscv_xlen == 64
  register long number asm("a7") = SYS_clone3;
  register long a0 asm("a0") = reinterpret_cast<long>(&args);
  register long a1 asm("a1") = sizeof(args);
  asm volatile(
      "ecall\n\tbnez a0, 1f\n\t"
      "mv a0, %[argument]\n\tmv t1, %[run]\n\tmv s0, zero\n\tjalr t1\n\tebreak\n1:"
      : "+r"(a0)
      : "r"(number), "r"(a1), [run] "r"(run), [argument] "r"(argument)
      : "t1", "memory");
  result = a0;
#else
  static_cast<void>(args), static_cast<void>(run), static_cast<void>(argument);
  result = -ENOSYS;
#endif
  return result;
}

/// Number of the system call that the kernel puts in the place of optimised uprobes (6.18, "uprobes/x86: Add uprobe
/// syscall to speed up uprobe"); -1: the machine has none.
inline constexpr long kNrUprobe =
#if defined(__x86_64__)
    336;
#else
    -1;
#endif

}  // namespace usdt::sys
