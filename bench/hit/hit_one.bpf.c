// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// A program of ordinary size: what attaching to many sites loads.
#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 hit_sum = 0;

USDT_PROGRAM(hit_one) {
  __u64 value;

  if (!usdt_arg_bits(ctx, 0, &value)) hit_sum += value;
  return 0;
}
