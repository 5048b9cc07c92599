/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The stock program behind usdt-trace: one ring record for each hit, every loss counted. */
#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before load; constants to the verifier. */
const volatile __u32 usdt_record_size = sizeof(struct usdt_event) + 12 * sizeof(struct usdt_event_arg);
const volatile __u32 usdt_string_slots = 0;
const volatile __u32 usdt_string_size = 0; /* bytes of one slot */
/* Hits of other processes are not counted: 0, or the one thread group that is. */
const volatile __u32 usdt_filter_tgid = 0;
/* 0, or: only processes that descend from this thread group count (a traced command and its children). */
const volatile __u32 usdt_ancestor_tgid = 0;
const volatile __u32 usdt_task_tgid_offset = 0;
const volatile __u32 usdt_task_parent_offset = 0;
/* The tracer's pid namespace, where it is not the initial one. */
const volatile __u64 usdt_pidns_dev = 0;
const volatile __u64 usdt_pidns_ino = 0;

/* The consumer sets it before it sleeps; the next record wakes it. */
__u32 usdt_consumer_asleep = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} usdt_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct usdt_site_stats);
} usdt_stats SEC(".maps");

#define MAX_GENERATIONS 64

/* True if the current process is usdt_ancestor_tgid's child, or its child's child ... The tracer is a subreaper, so
 * orphans come back to it and stay descendants. */
static __always_inline bool descends(void)
{
	void *task = (void *)bpf_get_current_task();
	__u32 tgid;

	for (int i = 0; i < MAX_GENERATIONS; i++) {
		if (bpf_probe_read_kernel(&task, sizeof(task), task + usdt_task_parent_offset) || !task)
			return false;
		if (bpf_probe_read_kernel(&tgid, sizeof(tgid), task + usdt_task_tgid_offset))
			return false;
		if (tgid == usdt_ancestor_tgid)
			return true;
		if (tgid <= 1)
			return false;
	}
	return false;
}

static __always_inline __u64 current_pid_tgid(void)
{
	struct bpf_pidns_info ns;

	if (!usdt_pidns_ino)
		return bpf_get_current_pid_tgid();
	if (bpf_get_ns_current_pid_tgid(usdt_pidns_dev, usdt_pidns_ino, &ns, sizeof(ns)))
		return 0; /* not visible in the tracer's namespace */
	return (__u64)ns.tgid << 32 | ns.pid;
}

/* The text a captured argument points to, into its slot of the record. */
static __always_inline int capture(void *record, const struct usdt_arg_spec *spec, __u64 pointer)
{
	__u32 slot = spec->capture - 1u;
	__u32 at = sizeof(struct usdt_event) + usdt_max_args * sizeof(struct usdt_event_arg);

	if (slot >= usdt_string_slots)
		return 0;
	return usdt_copy_text(record + at + slot * usdt_string_size, usdt_string_size, pointer);
}

static __always_inline void fill_args(void *record, const struct usdt_ctx *ctx)
{
	struct usdt_event_arg *args = record + sizeof(struct usdt_event);
	struct usdt_cursor at = {};
	struct usdt_arg_spec spec;

	for (__u32 i = 0; i < usdt_max_args && usdt_next_spec(ctx, &at, &spec); i++) {
		__u64 bits = 0;

		args[i].error = usdt_read(ctx, &spec, &bits);
		args[i].bits = bits;
		args[i].text = spec.capture && !args[i].error ? capture(record, &spec, bits) : 0;
	}
}

USDT_PROGRAM(usdt_trace_hit)
{
	__u64 pid_tgid = current_pid_tgid(), wake = BPF_RB_NO_WAKEUP;
	__u32 site = usdt_site(ctx);
	struct usdt_site_stats *stats;
	struct usdt_event *event;

	if (usdt_filter_tgid && usdt_filter_tgid != (__u32)(pid_tgid >> 32))
		return 0;
	if (usdt_ancestor_tgid && !descends())
		return 0;
	stats = bpf_map_lookup_elem(&usdt_stats, &site);
	if (!stats || (!ctx->spec && !usdt_is_packed(ctx)))
		return 0;
	/* Atomic although per CPU: another task's hit may preempt this one. */
	__sync_fetch_and_add(&stats->hits, 1);

	event = bpf_ringbuf_reserve(&usdt_events, usdt_record_size, 0);
	if (!event) {
		__sync_fetch_and_add(&stats->ring_full, 1);
		return 0;
	}
	event->ts = bpf_ktime_get_ns();
	event->pid = pid_tgid >> 32;
	event->tid = (__u32)pid_tgid;
	event->cpu = bpf_get_smp_processor_id();
	event->site = site;
	event->ip = usdt_ip(ctx->regs);
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	event->arg_cnt = usdt_arg_cnt(ctx);
	fill_args(event, ctx);
	/* A busy consumer polls; only a sleeping one is woken, once. */
	if (usdt_consumer_asleep) {
		usdt_consumer_asleep = 0;
		wake = BPF_RB_FORCE_WAKEUP;
	}
	bpf_ringbuf_submit(event, wake);
	return 0;
}
