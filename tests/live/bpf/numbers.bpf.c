// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// Writes the second argument of each hit of own:typed into a ring.
#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);
} numbers SEC(".maps");

USDT_PROG(on_typed, const char* text, int number) {
  int* record = bpf_ringbuf_reserve(&numbers, sizeof(*record), 0);

  if (!record) return 0;
  *record = number;
  bpf_ringbuf_submit(record, 0);
  return 0;
}
