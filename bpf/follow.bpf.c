/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Marks what descendants of a process fork, so that how many generations lie between does not matter. */
#include "descends.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* sched_process_fork(parent, child): the parent is the current task, the child does not run yet. */
SEC("raw_tp/sched_process_fork")
int usdt_on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 parent = task_word((void *)bpf_get_current_task(), usdt_stock()->task_signal_offset);
	__u64 child = task_word((void *)ctx->args[1], usdt_stock()->task_signal_offset);
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
	__u64 signal = task_word(task, usdt_stock()->task_signal_offset);
	__u32 pid = 0, tgid = 1;

	bpf_probe_read_kernel(&pid, sizeof(pid), task + usdt_stock()->task_pid_offset);
	bpf_probe_read_kernel(&tgid, sizeof(tgid), task + usdt_stock()->task_tgid_offset);
	if (pid == tgid)
		bpf_map_delete_elem(&usdt_descendants, &signal);
	return 0;
}
