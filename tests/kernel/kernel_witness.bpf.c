// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// What kernel_test.cpp attaches: a witness that reads registers by hand, and a program that calls every helper.
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

#define MOST 12

/* [0]: at the entry or the only hit, [1]: at the end of a call. */
__u64 hits[2];
__u64 values[2 * MOST];
__s64 errors[2 * MOST];
__u64 count;
__u64 cookie;
__u64 site_number;
__s64 typed_error;
__s64 typed_value;
char text[64];
__s64 text_length;
const volatile __u32 text_argument = 0;

USDT_PROGRAM(read_everything) {
  const __u32 end = usdt_is_return(ctx) ? 1 : 0;

#pragma unroll
  for (int n = 0; n < MOST; n++) {
    __u64 bits = 0;

    errors[end * MOST + n] = usdt_arg_bits(ctx, n, &bits);
    values[end * MOST + n] = bits;
  }
  count = usdt_arg_cnt(ctx);
  cookie = usdt_cookie(ctx);
  site_number = usdt_site(ctx);
  if (!end) text_length = usdt_str(ctx, text_argument, text, sizeof(text));
  hits[end]++;
  return 0;
}

USDT_PROGRAM(read_a_number) {
  int number;

  typed_error = usdt_arg(ctx, 0, &number);
  typed_value = number;
  hits[0]++;
  return 0;
}
