// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// The same with the system's libbpf.
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
//
#include <bpf/usdt.bpf.h>

#include "loops.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline __u64 read_sum(struct pt_regs* ctx, const __u32 count) {
  __u64 sum = 0;

#pragma unroll
  for (__u32 i = 0; i < count; i++) {
    long value;

    bpf_usdt_arg(ctx, i, &value);
    sum += value;
  }
  return sum;
}

#define READ(count) HIT_PROGRAM("usdt", hit_read_##count, read_sum(ctx, count))
HIT_PROGRAMS(READ)

SEC("usdt")
int hit_empty(struct pt_regs* ctx) {
  HIT_TIMES(t) HIT_AGAIN;
  return 0;
}
