/* SPDX-License-Identifier: BSD-2-Clause */
/* A user's own BPF program on the installed headers: counts hits whose first argument can be read and is not 0. */
#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 hits;

USDT_PROGRAM(on_hit) {
  __u64 first;

  if (usdt_arg(ctx, 0, &first) == 0 && first != 0) __sync_fetch_and_add(&hits, 1);
  return 0;
}
