/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Which thread of a number it is: the kernel gives the numbers of those that ended to new ones. */
#ifndef USDT_TRACE_THREADS_H
#define USDT_TRACE_THREADS_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "../stock.h"

/* A word of a task_struct; 0: it could not be read. */
static __always_inline __u64 word_of_task(const void *task, __u32 offset)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), task + offset);
	return word;
}

/* The first thread of the process that runs, where it is known how to find it. */
static __always_inline const void *leading_task(void)
{
	const void *task = (const void *)bpf_get_current_task();

	return usdt_stock()->threads.leader ? (const void *)word_of_task(task, usdt_stock()->threads.leader) : task;
}

/* The process that the one that runs is a child of. */
static __always_inline __s64 parent_process(void)
{
	const __u32 offset = usdt_stock()->threads.parent;
	const void *parent = (const void *)bpf_get_current_task();
	__u32 tgid;

	if (!offset)
		return USDT_NO_PARENT;
	parent = (const void *)word_of_task(parent, offset);
	if (!parent || bpf_probe_read_kernel(&tgid, sizeof(tgid), parent + usdt_stock()->threads.tgid))
		return USDT_NO_PARENT;
	return tgid;
}

/* Whether something that began at `time` was begun by an earlier thread of the same number; `process`: by an earlier
 * process. */
static __always_inline bool is_of_namesake(__u64 time, bool process)
{
	const __u32 offset = usdt_stock()->threads.start;

	if (!offset)
		return false;
	return word_of_task(process ? leading_task() : (const void *)bpf_get_current_task(), offset) > time;
}

/* A number that spans of this thread or process have, and none of another one with the same number. Up to 2^20 may be
 * added to it. Without the kernel's BTF it is the address of the task, which a later one may have again. */
static __always_inline __u64 pair_life(void)
{
	const __u32 until = usdt_stock()->spans.pair_life;
	const void *task = (const void *)bpf_get_current_task();
	__u64 life;

	if (until == USDT_PAIR_FOREVER)
		return 0;
	if (!usdt_stock()->threads.start)
		return until == USDT_PAIR_PROCESS ? 0 : (__u64)task << 20;
	life = word_of_task(until == USDT_PAIR_PROCESS ? leading_task() : task, usdt_stock()->threads.start) << 20;
	if (until == USDT_PAIR_IMAGE && usdt_stock()->threads.exec)
		life += (__u32)word_of_task(task, usdt_stock()->threads.exec) * 0x9e3779b97f4a7c15ull;
	return life;
}

#endif /* USDT_TRACE_THREADS_H */
