// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// The most usual application: two programs on two probes, which meet in a map. With USE_LIBBPF the same text is
// compiled with libbpf's usdt.bpf.h.
#ifdef USE_LIBBPF
// In this order: libbpf's headers use the kernel's types.
// clang-format off
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/usdt.bpf.h>
// clang-format on
#define ON(section, name, params...) SEC(section) int BPF_USDT(name, ##params)
#define COOKIE() ((__u64)bpf_usdt_cookie(ctx))
#else
#include <usdt/bpf/usdt.bpf.h>
#define ON(section, name, params...) USDT_PROG_IN(section, name, false, ##params)
#define COOKIE() usdt_cookie(ctx)
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 64);
  __type(key, __u32);
  __type(value, __u64);
} begun SEC(".maps");

__u64 on_begin_hits, on_begin_number, on_begin_cookie;
__u64 on_end_hits, on_end_number, on_end_cookie;
__u64 pairs, sum;

ON("usdt/own:typed", on_begin, const char* text, int number, int word) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  __u64 value = (__u32)number;

  bpf_map_update_elem(&begun, &thread, &value, BPF_ANY);
  on_begin_number = value;
  on_begin_cookie = COOKIE();
  __sync_fetch_and_add(&on_begin_hits, 1);
  return 0;
}

ON("usdt/own:memory", on_end, unsigned long number, const char* text) {
  __u32 thread = (__u32)bpf_get_current_pid_tgid();
  __u64* value = bpf_map_lookup_elem(&begun, &thread);

  on_end_number = number;
  on_end_cookie = COOKIE();
  __sync_fetch_and_add(&on_end_hits, 1);
  if (!value) return 0;
  __sync_fetch_and_add(&pairs, 1);
  __sync_fetch_and_add(&sum, *value + number);
  bpf_map_delete_elem(&begun, &thread);
  return 0;
}
