// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// Programs that may sleep; an object of their own, because kernels before 6.0 refuse them.
#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 hits;
__u64 values[1];
__s64 errors[1];
char text[64];
__s64 text_length;

USDT_PROGRAM_SLEEPABLE(read_memory_sleeping) {
  errors[0] = usdt_arg_bits(ctx, 0, &values[0]);
  text_length = usdt_str(ctx, 1, text, sizeof(text));
  hits++;
  return 0;
}

USDT_PROG_SLEEPABLE(take_typed_sleeping, __u64 number) {
  values[0] = number;
  hits++;
  return 0;
}
