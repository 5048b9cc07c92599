// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// A BPF program of our own: the second argument of each hit, as text, with the pid.
#include "own_program.h"

#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);
} events SEC(".maps");

USDT_PROG(on_hit, __u64 id, const char* customer) {
  struct order* order = bpf_ringbuf_reserve(&events, sizeof(*order), 0);

  if (!order) return 0;
  order->id = id;
  order->pid = bpf_get_current_pid_tgid() >> 32;
  order->cookie = usdt_cookie(ctx);
  bpf_probe_read_user_str(order->customer, sizeof(order->customer), customer);
  bpf_ringbuf_submit(order, 0);
  return 0;
}
