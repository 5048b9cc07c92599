/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls: what is known where they begin waits for where they end. */
#ifndef USDT_TRACE_CALLS_H
#define USDT_TRACE_CALLS_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "abilities.h"
#include "counts.h"
#include "guards.h"
#include "hits.h"
#include "open.h"
#include "record.h"
#include "threads.h"
#include "wanted.h"

/* Sessions of trampolines: arguments are still known at the end, so that the entry leaves nothing but the time. */
static __always_inline bool keeps_arguments(const struct usdt_ctx *ctx)
{
	return usdt_in_slots(ctx) && usdt_program()->moment == (USDT_AT_ENTRY | USDT_AT_RETURN);
}

static __always_inline bool is_session(void)
{
	return usdt_program()->moment == (USDT_AT_ENTRY | USDT_AT_RETURN);
}

/* Calls that begin at one time, by the clock, and are of one thread. Two that are within each other are, where the
 * clock ticks slowly; and any number of them of the idle tasks, which are thread 0 on all processors. */
#define MOST_CALLS_AT_ONCE 8

/* A blank record for the call of a session that begins now; `key` becomes one that no other call has. */
static __always_inline long add_session(struct usdt_call_key *key, const struct usdt_event *blank)
{
	long error = 0;

	key->frame = bpf_ktime_get_ns();
	for (__u32 i = 0; i < MOST_CALLS_AT_ONCE; i++, key->frame++) {
		error = update_elem(&usdt_open_calls, key, blank, BPF_NOEXIST);
		if (error != -USDT_EEXIST)
			break;
	}
	return error;
}

/* Whether calls also end where functions return that this one jumps to. Others call those, too, at the same place of
 * the stack, once a call has ended unseen (an exception). */
static __always_inline bool ends_elsewhere(void)
{
	return usdt_program()->return_by == USDT_RETURN_BY_ANY_RET;
}

static __always_inline __u64 return_address(const struct usdt_ctx *ctx)
{
	__u64 address = 0;

	load_return_address(ctx, &address);
	return address;
}

/* While a call has not ended its record has in place of the duration: the registers that it was begun with, of a call
 * of a process that replaced another record, and of those that end elsewhere, with where they return to; else 0. */
static __always_inline __u64 mark_of_call(const struct usdt_ctx *ctx)
{
	return (usdt_kept_registers(ctx) + (ends_elsewhere() ? return_address(ctx) << 1 : 0)) | 1;
}

/* The same of a call whose ends are two programs. A record that is there already is of a call whose end never came; or
 * of one that still goes on, in a program that copies stacks away and back (greenlets of Python). */
static __always_inline long add_call(const struct usdt_ctx *ctx, struct usdt_call_key *key,
				     const struct usdt_event *blank)
{
	long error = update_elem(&usdt_open_calls, key, blank, BPF_NOEXIST);
	struct usdt_event *event;

	if (error && error != -USDT_EEXIST)
		return error;
	if (!error && !ends_elsewhere())
		return 0;
	if (error)
		error = update_elem(&usdt_open_calls, key, blank, BPF_ANY);
	event = bpf_map_lookup_elem(&usdt_open_calls, key);
	if (event && ctx->source == USDT_SOURCE_USER)
		event->duration = mark_of_call(ctx);
	return error;
}

/* Calls that two programs see in a process are told apart by process and stack: a thread may go on with a call that
 * another one began (coroutines), and threads have no address of a stack in common. */
static __always_inline bool is_of_process(const struct usdt_ctx *ctx)
{
	return ctx->source == USDT_SOURCE_USER && !is_session();
}

/* Whether this is the end of that other call. */
static __always_inline bool is_of_another_call(const struct usdt_ctx *ctx, const struct usdt_event *event)
{
	return is_of_process(ctx) && event->duration && event->duration != mark_of_call(ctx);
}

/* Finds the key of the call that begins or ends here; sessions that begin do not have theirs yet. False: there is
 * none. */
static __always_inline bool find_key(const struct usdt_ctx *ctx, struct usdt_call_key *key)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	key->tid = is_of_process(ctx) ? pid_tgid >> 32 : (__u32)pid_tgid;
	if (is_session()) {
		if (ctx->returns)
			key->frame = *usdt_session_cookie(ctx);
		return true;
	}
	if (usdt_program()->return_by == USDT_RETURN_BY_GOROUTINE_RET)
		return usdt_goroutine(ctx, &key->goroutine, &key->frame);
	key->frame = usdt_frame(ctx);
	return true;
}

/* Calls are sampled at their beginning, but for those that fill a table at their end: the stack of those programs has
 * no room for more at the beginning. */
static __always_inline bool is_beginning_sampled(const __u32 can)
{
	return (can & FILLS_TABLE) || is_sampled();
}

static __always_inline bool is_end_sampled(const __u32 can)
{
	return !(can & FILLS_TABLE) || is_sampled();
}

static __always_inline void open_call(const struct usdt_ctx *ctx, const __u32 can, __u32 site,
				      struct usdt_site_stats *stats)
{
	struct usdt_call_key key = {.site = site};
	__u32 zero = 0;
	struct usdt_event *event;
	long error;

	if (keeps_arguments(ctx)) {
		*usdt_session_cookie(ctx) = is_beginning_sampled(can) ? bpf_ktime_get_ns() : 0;
		if (!*usdt_session_cookie(ctx))
			count_unsampled(stats);
		return;
	}
	event = bpf_map_lookup_elem(&usdt_blank, &zero);
	if (!event || !find_key(ctx, &key))
		return;
	if (is_session()) {
		error = add_session(&key, event);
		*usdt_session_cookie(ctx) = error ? 0 : key.frame;
	} else {
		error = add_call(ctx, &key, event);
	}
	if (error) {
		__sync_fetch_and_add(&stats->calls_full, 1);
		return;
	}
	event = bpf_map_lookup_elem(&usdt_open_calls, &key);
	if (!event)
		return;
	/* The record stays blank, so that the end is not taken for that of a call whose own never came. */
	if (!is_beginning_sampled(can)) {
		count_unsampled(stats);
		return;
	}
	fill(event, ctx, for_records(can), site, usdt_pid_tgid());
	if (may_wait(can) && is_paged_out(event, can)) {
		page_in(ctx, can);
		fill_args(event, ctx, for_records(can), false);
	}
	if (can & TAKES_STACKS)
		keep_stacks(ctx, event);
}

/* The record of a call that ends goes to the ring. Only once it is taken out is it known that it was the call's to the
 * last: a full map may have given its place to another one meanwhile. */
static __always_inline void record_call(const struct usdt_event *event, const struct usdt_call_key *key,
					struct usdt_site_stats *stats)
{
	void *record = bpf_ringbuf_reserve(&usdt_events, usdt_stock()->record.size, 0);

	/* Looked at once: verifiers before Linux 5.11 do not know that a second look finds the same. */
	if (!record) {
		if (take_call(key, stats))
			count_lost(stats);
		return;
	}
	bpf_probe_read_kernel(record, usdt_stock()->record.size, event);
	if (take_call(key, stats))
		bpf_ringbuf_submit(record, wake_flags());
	else
		bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
}

static __always_inline void close_call(const struct usdt_ctx *ctx, struct usdt_row *row, const __u32 can, __u32 site,
				       struct usdt_site_stats *stats)
{
	struct usdt_call_key key = {.site = site};
	struct usdt_event *event;

	if (!find_key(ctx, &key))
		return;
	if (keeps_arguments(ctx)) {
		if (!key.frame) /* it began before the trace, or did not count */
			return;
		if (!is_end_sampled(can)) {
			count_unsampled(stats);
			return;
		}
		__sync_fetch_and_add(&stats->ended, 1);
		record_hit(ctx, row, can, site, stats, key.frame);
		return;
	}
	event = bpf_map_lookup_elem(&usdt_open_calls, &key);
	if (!event || is_of_another_call(ctx, event))
		return;
	if (!is_end_sampled(can)) {
		if (!bpf_map_delete_elem(&usdt_open_calls, &key))
			count_unsampled(stats);
		return;
	}
	/* A blank record is of a call that was not sampled. */
	if ((!(can & FILLS_TABLE) && usdt_stock()->guards.sample && !event->ts) ||
	    (!is_session() && is_of_namesake(event->ts, is_of_process(ctx)))) {
		bpf_map_delete_elem(&usdt_open_calls, &key);
		return;
	}
	event->duration = bpf_ktime_get_ns() - event->ts;
	fill_args(event, ctx, for_records(can), true);
	if (!is_call_wanted(ctx, row, can, event, &key, stats))
		return;
	if (!(can & COUNTS_ONLY) && is_slow_enough(event->duration) && may_pass())
		record_call(event, &key, stats);
	else if (take_call(&key, stats) && !(can & COUNTS_ONLY))
		is_slow_enough(event->duration) ? count_beyond_rate(stats) : count_faster(stats);
}

#endif /* USDT_TRACE_CALLS_H */
