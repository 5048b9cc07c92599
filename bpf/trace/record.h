/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A record: what a hit says of itself. */
#ifndef USDT_TRACE_RECORD_H
#define USDT_TRACE_RECORD_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "abilities.h"
#include "context.h"
#include "scripts.h"
#include "stacks.h"
#include "texts.h"
#include "threads.h"

/* Records of calls are filled at both ends: at the second what the first one could not know. */
static __always_inline void fill_args(void *record, const struct usdt_ctx *ctx, const __u32 can, bool second_end)
{
	struct usdt_event_arg *args = own_args(record, can);
	struct usdt_cursor at = {};
	struct usdt_arg_spec spec;

	for (__u32 i = 0; i < usdt_program()->max_args && usdt_next_spec(ctx, &at, &spec); i++) {
		__u32 failed = 0;
		__u64 bits = 0;
		int error;

		if (second_end && args[i].error != -USDT_ENODATA)
			continue;
		error = can & TAKES_STEPS ? usdt_value(ctx, &spec, &bits, &failed) : usdt_read(ctx, &spec, &bits);
		args[i].error = usdt_opaque(ctx, error); /* one state for the verifier, not one for each error */
		args[i].bits = bits;
		args[i].text = failed;
	}
	/* At the end of a call without a record of its own there is none that anybody asks for. */
	if (can & COPIES_MEMORY || (can & KEEPS_TEXTS && !second_end))
		capture_texts(record, ctx, can);
}

static __always_inline void take_owner(struct usdt_owner *owner)
{
	owner->uid_gid = bpf_get_current_uid_gid();
	owner->cgroup = bpf_get_current_cgroup_id();
	owner->parent = parent_process();
}

static __always_inline void fill(struct usdt_event *event, const struct usdt_ctx *ctx, const __u32 can, __u32 site,
				 __u64 pid_tgid)
{
	void *stack = (void *)event + sizeof(*event) + args_of_record(can) * sizeof(struct usdt_event_arg);

	event->ts = bpf_ktime_get_ns();
	event->pid = pid_tgid >> 32;
	event->tid = (__u32)pid_tgid;
	event->cpu = bpf_get_smp_processor_id();
	event->site = usdt_stock()->record.site_base + site;
	event->ip = ctx->source == USDT_SOURCE_USER ? usdt_ip(ctx->regs) : 0;
	event->stack_size = 0;
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	event->arg_cnt = usdt_arg_cnt(ctx);
	/* A process at a USDT site is not in the kernel. */
	if (usdt_stock()->record.stack_depth && usdt_source() != USDT_SOURCE_USER)
		event->stack_size = take_stack(ctx, stack);
	if ((can & COPIES_MEMORY) && usdt_stock()->user_stack.at)
		take_user_stack(ctx, event);
	if ((can & COPIES_MEMORY) && usdt_stock()->scripts.at)
		take_script_stack((void *)event + usdt_stock()->scripts.at);
	if (!(can & MAKES_NO_RECORD) && usdt_stock()->record.owners)
		take_owner((void *)event + usdt_stock()->record.size - sizeof(struct usdt_owner));
	if (usdt_stock()->record.context_at)
		take_context((void *)event + usdt_stock()->record.context_at, event->pid);
	fill_args(event, ctx, can, false);
}

/* Whether an argument of the site is on a page that is not in memory. */
static __always_inline bool is_paged_out(struct usdt_event *event, const __u32 can)
{
	const struct usdt_event_arg *args = own_args(event, can);
	const __u32 first = can & ENDS_SPANS ? usdt_program()->first_arg : 0;

	for (__u32 i = 0; i < usdt_program()->max_args; i++) {
		if (first + i >= event->arg_cnt)
			break;
		if (args[i].error == -USDT_EFAULT || args[i].text == -USDT_EFAULT)
			return true;
	}
	return false;
}

/* Waits for the pages of the arguments, each on its own; what their windows had of them is forgotten. */
static __always_inline void page_in(const struct usdt_ctx *ctx, const __u32 can)
{
	struct usdt_ctx *waiting = (struct usdt_ctx *)ctx;
	struct usdt_cursor at = {};
	struct usdt_arg_spec spec;
	__u32 failed;
	__u64 bits;
	int error;

	waiting->sleepable = true;
	for (__u32 i = 0; i < usdt_program()->max_args && usdt_next_spec(ctx, &at, &spec); i++) {
		if (!(can & TAKES_STEPS) || !(spec.kind & USDT_ARG_HAS_STEPS))
			spec.window = 0;
		error = can & TAKES_STEPS ? usdt_value(ctx, &spec, &bits, &failed) : usdt_read(ctx, &spec, &bits);
		if (!error && spec.capture)
			page_in_text(bits);
	}
	if (usdt_program()->windows)
		usdt_init_window(ctx, ctx->window);
	waiting->sleepable = false;
}

#endif /* USDT_TRACE_RECORD_H */
