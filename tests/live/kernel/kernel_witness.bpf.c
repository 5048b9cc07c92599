// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// What kernel_test judges by: a program that reads registers by hand.
#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MOST_SITES 4096
#define REGISTERS 8
#define STACK 6

/* The last hit of each site. */
struct {
  __u64 hits;
  __u64 registers[REGISTERS];
  __u64 stack[STACK];
} seen[MOST_SITES];

#if defined(__TARGET_ARCH_arm64)
#define ARGUMENTS(X) X(0, 0) X(1, 8) X(2, 16) X(3, 24) X(4, 32) X(5, 40) X(6, 48) X(7, 56)
#define STACK_POINTER 248
#define FIRST_ON_STACK 0
#define WORD "u64"
#elif defined(__TARGET_ARCH_i386)
#define ARGUMENTS(X) X(0, 24) X(1, 8) X(2, 4)
#define STACK_POINTER 60
#define FIRST_ON_STACK 4
#define WORD "u32"
#else
#define ARGUMENTS(X) X(0, 112) X(1, 104) X(2, 96) X(3, 88) X(4, 72) X(5, 64)
#define STACK_POINTER 152
#define FIRST_ON_STACK 8
#define WORD "u64"
#endif

#define BY_HAND(dst, offset) asm volatile("%0 = *(" WORD " *)(%1 + %2)" : "=r"(dst) : "r"(ctx->regs), "i"(offset))

USDT_PROGRAM(witness) {
  __u32 site = usdt_site(ctx);
  __u64 value;

  if (site >= MOST_SITES) return 0;
#define KEEP(n, offset)   \
  BY_HAND(value, offset); \
  seen[site].registers[n] = value;
  ARGUMENTS(KEEP)
  BY_HAND(value, STACK_POINTER);
  bpf_probe_read_kernel(seen[site].stack, sizeof(seen[site].stack), (void*)(value + FIRST_ON_STACK));
  seen[site].hits++;
  return 0;
}
