// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// Reads arguments with this project's header; loaded once for each carrier.
#include <usdt/bpf/usdt.bpf.h>

#include "loops.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

USDT_PROGRAM(hit_read) {
  const __u32 count = hit_args;
  __u64 sum = 0;

  HIT_TIMES(t) {
    struct usdt_ctx again = *ctx;

    HIT_AGAIN;
    asm volatile("" : "+r"(again.cookie));  // else it is unpacked once for all times
    HIT_ARGS(i, count) {
      __u64 value;

      usdt_arg_bits(&again, i, &value);
      sum += value;
    }
  }
  hit_sum += sum;
  return 0;
}
