// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// A program that no verifier takes.
#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

USDT_PROGRAM(reads_anywhere) {
  __u64 value;

  return usdt_arg(ctx, 0, &value) ? 0 : *(int*)value;
}
