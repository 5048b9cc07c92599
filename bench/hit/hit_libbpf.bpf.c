// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// The same with the system's libbpf.
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
//
#include <bpf/usdt.bpf.h>

#include "loops.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("usdt")
int hit_read(struct pt_regs* ctx) {
  const __u32 count = hit_args;
  __u64 sum = 0;

  HIT_TIMES(t) {
    HIT_AGAIN;
    HIT_ARGS(i, count) {
      long value;

      bpf_usdt_arg(ctx, i, &value);
      sum += value;
    }
  }
  hit_sum += sum;
  return 0;
}

SEC("usdt")
int hit_empty(struct pt_regs* ctx) {
  HIT_TIMES(t) HIT_AGAIN;
  return 0;
}
