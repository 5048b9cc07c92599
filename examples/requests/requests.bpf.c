// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// Two programs on two probes, paired in a map: how long each request took, and how it ended.
#include "requests.h"

#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// The oldest give way: a process that is killed never ends what it has begun.
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

__u64 lost; /* the ring was full */

USDT_PROG(on_begin, __u64 id, const char* path) {
  struct request_key key = {.id = id, .pid = bpf_get_current_pid_tgid() >> 32};
  struct request_begun begun = {.at = bpf_ktime_get_ns()};

  bpf_probe_read_user_str(begun.path, sizeof(begun.path), path);
  bpf_map_update_elem(&under_way, &key, &begun, BPF_ANY);
  return 0;
}

USDT_PROG(on_end, __u64 id, int status) {
  struct request_key key = {.id = id, .pid = bpf_get_current_pid_tgid() >> 32};
  struct request_begun* begun = bpf_map_lookup_elem(&under_way, &key);
  struct request* request;

  if (!begun) return 0; /* it began before the trace */
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
