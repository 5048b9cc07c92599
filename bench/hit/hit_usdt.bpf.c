// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// Reads arguments with this project's header; loaded once for each carrier.
#include <usdt/bpf/usdt.bpf.h>

#include "loops.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline __u64 read_sum(const struct usdt_ctx* ctx, const __u32 count) {
  __u64 sum = 0;

#pragma unroll
  for (__u32 i = 0; i < count; i++) {
    __u64 value;

    usdt_arg_bits(ctx, i, &value);
    sum += value;
  }
  return sum;
}

#define READ(count)                                                                       \
  USDT_PROGRAM(hit_read_##count) {                                                        \
    __u64 sum = 0;                                                                        \
                                                                                          \
    HIT_TIMES(t) {                                                                        \
      struct usdt_ctx again = *ctx;                                                       \
                                                                                          \
      HIT_AGAIN;                                                                          \
      asm volatile("" : "+r"(again.cookie)); /* else it is unpacked once for all times */ \
      sum += read_sum(&again, count);                                                     \
    }                                                                                     \
    hit_sum += sum;                                                                       \
    return 0;                                                                             \
  }
HIT_PROGRAMS(READ)
