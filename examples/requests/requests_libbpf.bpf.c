// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// The same as a project that loads it with a libbpf skeleton has it: its text stays as it is. It is compiled with our
// <bpf/usdt.bpf.h> (usdt_add_bpf(... LIBBPF_COMPAT)).
// In this order: libbpf's headers use the kernel's types.
// clang-format off
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/usdt.bpf.h>
// clang-format on

#include "requests.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, struct request_key);
  __type(value, struct request_begun);
} under_way SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);
} requests SEC(".maps");

__u64 lost;

SEC("usdt")
int BPF_USDT(on_begin, __u64 id, const char* path) {
  struct request_key key = {.id = id, .pid = bpf_get_current_pid_tgid() >> 32};
  struct request_begun begun = {.at = bpf_ktime_get_ns()};

  bpf_probe_read_user_str(begun.path, sizeof(begun.path), path);
  bpf_map_update_elem(&under_way, &key, &begun, BPF_ANY);
  return 0;
}

SEC("usdt")
int BPF_USDT(on_end, __u64 id, int status) {
  struct request_key key = {.id = id, .pid = bpf_get_current_pid_tgid() >> 32};
  struct request_begun* begun = bpf_map_lookup_elem(&under_way, &key);
  struct request* request;

  if (!begun) return 0;
  request = bpf_ringbuf_reserve(&requests, sizeof(*request), 0);
  if (request) {
    request->id = id;
    request->nanoseconds = bpf_ktime_get_ns() - begun->at;
    request->pid = key.pid;
    request->status = status;
    __builtin_memcpy(request->path, begun->path, sizeof(request->path));
    bpf_ringbuf_submit(request, 0);
  } else {
    __sync_fetch_and_add(&lost, 1);
  }
  bpf_map_delete_elem(&under_way, &key);
  return 0;
}
