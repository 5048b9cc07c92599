/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Marks what descendants of a process fork, so that how many generations lie between does not matter. */
#include "descends.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* sched_process_fork(parent, child): the parent is the current task, the child does not run yet. */
SEC("raw_tp/sched_process_fork")
int usdt_on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 parent = task_word((void *)bpf_get_current_task(), usdt_stock()->family.task.signal);
	__u64 child = task_word((void *)ctx->args[1], usdt_stock()->family.task.signal);
	__u8 mark = 1;

	/* A new thread begins no new process. */
	if (child != parent && descends())
		update_elem(&usdt_descendants, &child, &mark, BPF_ANY);
	return 0;
}

/* sched_process_free(task), before the task is freed. The thread that gives the process its number is the last but for
 * those that are being freed. */
SEC("raw_tp/sched_process_free")
int usdt_on_free(struct bpf_raw_tracepoint_args *ctx)
{
	void *task = (void *)ctx->args[0];
	__u64 signal = task_word(task, usdt_stock()->family.task.signal);
	__u32 pid = 0, tgid = 1;

	bpf_probe_read_kernel(&pid, sizeof(pid), task + usdt_stock()->family.task.pid);
	bpf_probe_read_kernel(&tgid, sizeof(tgid), task + usdt_stock()->family.task.tgid);
	if (pid == tgid)
		bpf_map_delete_elem(&usdt_descendants, &signal);
	return 0;
}

/* How many programs descendants have executed with which the kernel took their perf events: setuid ones of another
 * user, and those that their user may not read (begin_new_exec() in fs/exec.c). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} usdt_shielded SEC(".maps");

/* sched_process_exec(task, ...): it is the new program. */
SEC("raw_tp/sched_process_exec")
int usdt_on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	const __u64 mask = 3, by_its_user = 1; /* MMF_DUMPABLE_MASK, SUID_DUMP_USER (linux/sched/coredump.h) */
	__u32 first = 0;
	__u64 *count, image;

	if (!usdt_stock()->family.task.image || !usdt_stock()->family.task.dumpable)
		return 0;
	image = task_word((void *)ctx->args[0], usdt_stock()->family.task.image);
	if (!image || (task_word((void *)image, usdt_stock()->family.task.dumpable) & mask) == by_its_user ||
	    !descends())
		return 0;
	count = bpf_map_lookup_elem(&usdt_shielded, &first);
	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}
