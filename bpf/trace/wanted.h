/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Which hits and calls count, by the filter or the table's question. */
#ifndef USDT_TRACE_WANTED_H
#define USDT_TRACE_WANTED_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "abilities.h"
#include "context.h"
#include "counts.h"
#include "open.h"
#include "rows.h"
#include "stacks.h"
#include "texts.h"

/* Counts a hit that the answer to the question about it leaves out. */
static __always_inline bool leaves_out(__u64 answer, struct usdt_site_stats *stats)
{
	if (answer == USDT_NO)
		__sync_fetch_and_add(&stats->rejected, 1);
	else if (answer != USDT_YES)
		__sync_fetch_and_add(&stats->undecided, 1);
	return answer != USDT_YES;
}

/* A call that ends: its record. */
struct ended_call {
	struct usdt_event *event;
	const struct usdt_call_key *key; /* in usdt_open_calls */
};

/* Whether the hit becomes an event, by the question about it; where it does not count, that is counted, and where there
 * is a table, it becomes a row. `call` may be NULL: a call that is no event is taken out. */
static __always_inline bool is_wanted(const struct usdt_ctx *ctx, struct usdt_question *question, struct usdt_row *row,
				      const struct ended_call *call, const __u32 can, struct usdt_site_stats *stats)
{
	__u64 answer;

	if (can & FILLS_TABLE) {
		*row = (struct usdt_row){};
		answer = usdt_compiled_row(question, row);
	} else {
		answer = usdt_compiled_answer(question);
	}
	if ((can & TAKES_STACKS) && answer == USDT_YES)
		put_stacks(ctx, row, call ? call->event : NULL);
	/* The question and the row have copied the record's values by now. */
	if (call && ((can & FILLS_TABLE) || answer != USDT_YES) && !take_call(call->key, stats))
		return false;
	if (leaves_out(answer, stats))
		return false;
	if (can & FILLS_TABLE)
		tally(row, question, can, stats);
	return !(can & FILLS_TABLE);
}

static __always_inline bool is_hit_wanted(const struct usdt_ctx *ctx, struct usdt_row *row, const __u32 can,
					  struct usdt_site_stats *stats, __u64 start)
{
	struct usdt_question *question;
	bool wanted;

	if (can & ASKS_NOTHING || (!(can & FILLS_TABLE) && !usdt_program()->filtered))
		return true;
	question = usdt_begin_question(ctx);
	if (may_wait(can) && question->unread) {
		((struct usdt_ctx *)ctx)->sleepable = true;
		question = usdt_begin_question(ctx);
		((struct usdt_ctx *)ctx)->sleepable = false;
	}
	if (usdt_stock()->record.context_at)
		put_context(question);
	if (can & FILLS_TABLE)
		question->site = usdt_stock()->record.site_base + usdt_site(ctx);
	if ((can & MAKES_CALLS) && start)
		question->duration = bpf_ktime_get_ns() - start;
	wanted = is_wanted(ctx, question, row, NULL, can, stats);
	if (!(can & FILLS_TABLE))
		usdt_end_question(ctx);
	return wanted;
}

/* The same at the end of a call, of which both ends are in its record. */
static __always_inline bool is_call_wanted(const struct usdt_ctx *ctx, struct usdt_row *row, const __u32 can,
					   struct usdt_event *event, const struct usdt_call_key *key,
					   struct usdt_site_stats *stats)
{
	const struct ended_call call = {event, key};
	struct usdt_question *question = (struct usdt_question *)ctx->window;
	const struct usdt_event_arg *args = (const void *)event + sizeof(*event);
	__u32 unread = 0;

	if (!(can & FILLS_TABLE) && !usdt_program()->filtered)
		return true;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < USDT_FILTER_VALUES; i++) {
		__u32 n = usdt_program()->filter_args[i];
		__u64 value;
		bool failed;

		if (i >= usdt_program()->filter_values)
			break;
		asm volatile("" : "+r"(n));
		if (is_of_context(n)) {
			failed = !context_word(event, n, &value);
		} else if (n < usdt_program()->max_args) {
			value = args[n].bits;
			failed = args[n].error;
		} else {
			return false;
		}
		if (usdt_program()->filter_texts[i])
			failed = !(can & (COPIES_MEMORY | FILLS_TABLE | COUNTS_ONLY)) ||
				 !find_kept_text(event, i, can, &value);
		usdt_put_value(question, i, value);
		if (failed)
			unread |= 1u << i;
	}
	question->unread = usdt_unknown(unread);
	question->site = event->site;
	question->duration = event->duration;
	return is_wanted(ctx, question, row, &call, can, stats);
}

#endif /* USDT_TRACE_WANTED_H */
