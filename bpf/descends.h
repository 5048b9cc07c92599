/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Tells whether the current process is a descendant: for the stock program and for the programs that follow forks. */
#ifndef USDT_DESCENDS_H
#define USDT_DESCENDS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>
#include "stock.h"

/* Hits of processes that may descend from it or not: too many generations, and none of the marks below. */
__u64 usdt_undecided = 0;

/* Processes that were forked by a descendant since follow.bpf.c looks on: their signal_struct, which a process keeps
 * from its fork until nothing of it runs any more, whichever of its threads ends first or execs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u8);
} usdt_descendants SEC(".maps");

#define MAX_GENERATIONS 64

static __always_inline __u64 task_word(void *task, __u32 offset)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(void *), task + offset);
	return word;
}

static __always_inline bool is_marked(__u64 signal)
{
	return bpf_map_lookup_elem(&usdt_descendants, &signal) != 0;
}

/* A child of the tracer that is no process of the command: the library makes some of its system calls in tasks of their
 * own (sdk/src/sys/separate_task.hpp), which alone tell nobody of their end. */
static __always_inline bool is_tracers_own(void *child)
{
	int exit_signal = 0;

	bpf_probe_read_kernel(&exit_signal, sizeof(exit_signal), child + usdt_stock()->family.task.exit_signal);
	return !usdt_stock()->family.ancestors_count && exit_signal == 0;
}

static __always_inline bool is_ancestor(__u32 tgid)
{
	return usdt_is_among(&usdt_stock()->family.ancestors, tgid);
}

/* True if the current process is an ancestor's child, or its child's child ... Orphans are marked; and where the
 * ancestor is a subreaper, as usdt-trace is for its command, they come back to it and stay descendants. The walk finds
 * those that are older than the marks, or found no room there. If all_but_tasks is set, true for all but the tasks of
 * the tracer. Such tasks call no function of a library, but functions and tracepoints of the kernel see them. */
static __always_inline bool descends(void)
{
	void *task = (void *)bpf_get_current_task();
	__u32 tgid;

	if (is_marked(task_word(task, usdt_stock()->family.task.signal)))
		return true;
	if (usdt_stock()->family.ancestors_count && is_ancestor(bpf_get_current_pid_tgid() >> 32))
		return true;
	for (int i = 0; i < MAX_GENERATIONS; i++) {
		void *child = task;

		task = (void *)task_word(task, usdt_stock()->family.task.parent);
		if (!task || bpf_probe_read_kernel(&tgid, sizeof(tgid), task + usdt_stock()->family.task.tgid))
			return false;
		if (is_ancestor(tgid))
			return !is_tracers_own(child);
		if (usdt_stock()->family.all_but_tasks)
			return true;
		if (tgid <= 1)
			return false;
	}
	__sync_fetch_and_add(&usdt_undecided, 1);
	return false;
}

#endif /* USDT_DESCENDS_H */
