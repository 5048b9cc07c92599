/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Notes which threads end, and which processes execute another program: what has begun there never ends. */
#include <usdt/bpf/hit.h>
#include "stock.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* By the number of the thread, as the tracer's pid namespace has it: when it ended or became another program, ns of
 * CLOCK_MONOTONIC, with bit 0 set where it ended. Old entries make room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
} usdt_ends SEC(".maps");

static __always_inline int note_end(__u64 ended)
{
	__u32 tid = (__u32)usdt_pid_tgid();
	__u64 now = (bpf_ktime_get_ns() & ~1ull) | ended;

	update_elem(&usdt_ends, &tid, &now, BPF_ANY);
	return 0;
}

/* sched_process_exit(task): in that task, while it still has its number. */
SEC("raw_tp/sched_process_exit")
int usdt_on_exit(void *ctx)
{
	return note_end(1);
}

/* sched_process_exec(task, ...): in the thread that goes on as the new program, when the others have ended. */
SEC("raw_tp/sched_process_exec")
int usdt_on_exec(void *ctx)
{
	return note_end(0);
}
