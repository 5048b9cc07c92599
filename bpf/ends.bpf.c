/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Notes which threads end, and which processes execute another program: what has begun there never ends. */
#include <usdt/bpf/event.h>
#include <usdt/bpf/hit.h>
#include "stock.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

USDT_CONSTANTS(usdt_thread_ends)

/* By the number of the thread, as the tracer's pid namespace has it. Old entries make room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct usdt_thread_end);
} usdt_ends SEC(".maps");

/* The entry of the current thread, which an earlier one of its number may have left there. */
static __always_inline struct usdt_thread_end *end_of_thread(void)
{
	struct usdt_thread_end none = {};
	__u32 tid = (__u32)usdt_pid_tgid();

	update_elem(&usdt_ends, &tid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&usdt_ends, &tid);
}

/* Whether all threads of the process end (include/linux/sched/signal.h). */
static __always_inline bool process_ends(void)
{
	const __u32 group_exit = 4; /* SIGNAL_GROUP_EXIT */
	const void *task = (const void *)bpf_get_current_task();
	const void *signal = NULL;
	__u32 flags = 0;

	if (!usdt_thread_ends()->signal)
		return false;
	bpf_probe_read_kernel(&signal, sizeof(signal), task + usdt_thread_ends()->signal);
	bpf_probe_read_kernel(&flags, sizeof(flags), signal + usdt_thread_ends()->flags);
	return flags & group_exit;
}

/* sched_process_exit(task): in that task, while it still has its number. */
SEC("raw_tp/sched_process_exit")
int usdt_on_exit(void *ctx)
{
	struct usdt_thread_end *end = end_of_thread();

	if (end)
		end->ended = (bpf_ktime_get_ns() & ~1ull) | process_ends();
	return 0;
}

/* sched_process_exec(task, ...): in the thread that goes on as the new program, when the others have ended. */
SEC("raw_tp/sched_process_exec")
int usdt_on_exec(void *ctx)
{
	struct usdt_thread_end *end = end_of_thread();

	if (end)
		end->executed = bpf_ktime_get_ns();
	return 0;
}
