/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Spans: from a hit at one place to one at another, which have the same key. The record of the first waits for the
 * second, which makes one event of both. */
#ifndef USDT_TRACE_SPANS_H
#define USDT_TRACE_SPANS_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "abilities.h"
#include "calls.h"
#include "counts.h"
#include "guards.h"
#include "open.h"
#include "record.h"
#include "threads.h"
#include "wanted.h"

/* usdt_open_calls has the records of spans that have not ended, too, each with a struct usdt_open_span behind it, whole
 * where it is asked whose they are. The record of a span that is not sampled stays blank, so that its end is not taken
 * for that of the one around it. */
static __always_inline struct usdt_open_span *behind_record(const void *event)
{
	return (void *)event + usdt_stock()->record.size;
}

static __always_inline __u64 *open_spans(void *outermost)
{
	return &behind_record(outermost)->open;
}

static __always_inline bool find_span_key(const struct usdt_ctx *ctx, struct usdt_span_key *key, const __u32 can)
{
	const volatile __u8 *args = usdt_program()->pair_args;
	struct usdt_question *question = usdt_question_about(ctx, args, usdt_program()->pair_values);
	__u64 answer;

	if (may_wait(can) && question->unread) {
		((struct usdt_ctx *)ctx)->sleepable = true;
		question = usdt_question_about(ctx, args, usdt_program()->pair_values);
		((struct usdt_ctx *)ctx)->sleepable = false;
	}
	*key = (struct usdt_span_key){};
	answer = usdt_compiled_pair(question, (struct usdt_row *)key);
	usdt_end_question(ctx);
	key->part = pair_life();
	return answer == USDT_YES;
}

/* Adds to the number of open spans with these keys, if there are any; `first`: the part of the outermost one. */
static __always_inline void change_open(struct usdt_span_key *key, __u64 first, __s64 by)
{
	void *outermost;

	key->part = first;
	outermost = bpf_map_lookup_elem(&usdt_open_calls, key);
	if (outermost)
		__sync_fetch_and_add(open_spans(outermost), by);
}

/* There is no record for a span that begins: of those with its keys the next end is its own, and no other one's. */
static __always_inline void lose_span(struct usdt_span_key *key, __u64 first, struct usdt_site_stats *stats)
{
	void *outermost;

	__sync_fetch_and_add(&stats->calls_full, 1);
	key->part = first;
	outermost = bpf_map_lookup_elem(&usdt_open_calls, key);
	if (outermost)
		__sync_fetch_and_add(&behind_record(outermost)->lost, 1);
}

/* Adds a blank record for a span that begins. It may replace a record within an earlier outermost span that the map had
 * given up: that record's span cannot end any more. */
static __always_inline long add_span(const struct usdt_span_key *key, const struct usdt_event *blank,
				     const struct usdt_event *outermost)
{
	long error = update_elem(&usdt_open_calls, key, blank, BPF_NOEXIST);
	const struct usdt_event *known;

	if (error != -USDT_EEXIST || !outermost)
		return error;
	known = bpf_map_lookup_elem(&usdt_open_calls, key);
	if (!known || !known->ts || known->ts >= outermost->ts)
		return error;
	return update_elem(&usdt_open_calls, key, blank, BPF_ANY);
}

static __always_inline void begin_span(const struct usdt_ctx *ctx, struct usdt_span_key *key, const __u32 can,
				       __u32 site, struct usdt_site_stats *stats)
{
	void *outermost = bpf_map_lookup_elem(&usdt_open_calls, key);
	const __u64 first = key->part;
	const bool sampled = is_sampled();
	struct usdt_event *event;
	__u32 zero = 0;

	/* A span that begins within a lost one is lost with it, even where there is room again. */
	if (outermost && behind_record(outermost)->lost) {
		lose_span(key, first, stats);
		return;
	}
	if (outermost)
		key->part = first + *open_spans(outermost);
	event = bpf_map_lookup_elem(&usdt_blank, &zero);
	if (!event || add_span(key, event, outermost)) {
		lose_span(key, first, stats);
		return;
	}
	event = bpf_map_lookup_elem(&usdt_open_calls, key);
	if (!event)
		return;
	if (!sampled)
		count_unsampled(stats);
	for (__u32 look = 0; sampled && look < 2; look++) {
		fill(event, ctx, for_records(can), site, usdt_pid_tgid());
		if (!may_wait(can) || look == 1 || !is_paged_out(event, can))
			break;
		page_in(ctx, can);
	}
	if (usdt_stock()->spans.owner)
		take_owner(&behind_record(event)->owner);
	change_open(key, first, 1);
}

/* Takes a span out. If two ends find one beginning, one of them succeeds. */
static __always_inline bool take_out(struct usdt_span_key *key, __u64 first)
{
	if (bpf_map_delete_elem(&usdt_open_calls, key))
		return false;
	if (key->part != first)
		change_open(key, first, -1);
	return true;
}

/* A span that ends. */
struct ended_span {
	__u32 begin; /* the site where it began, */
	__u32 end;   /* and where it ends */
	__u64 duration;
	__u64 first; /* the part of the outermost one with its keys */
};

static __always_inline bool take_span(struct usdt_span_key *key, const struct ended_span *span,
				      struct usdt_site_stats *stats)
{
	struct usdt_site_stats *begins = stats_of(span->begin);

	if (!take_out(key, span->first))
		return false;
	if (begins)
		__sync_fetch_and_add(&begins->ended, 1);
	__sync_fetch_and_add(&stats->ended, 1);
	return true;
}

/* The innermost span with these keys, unless that was lost or given up; `key` becomes its own. */
static __always_inline struct usdt_event *find_span(struct usdt_span_key *key)
{
	void *found = bpf_map_lookup_elem(&usdt_open_calls, key), *innermost;
	__u64 open;

	if (!found)
		return NULL;
	if (behind_record(found)->lost) {
		__sync_fetch_and_add(&behind_record(found)->lost, -1);
		return NULL;
	}
	open = *open_spans(found);
	if (!open)
		return NULL;
	if (open == 1)
		return found;
	key->part += open - 1;
	innermost = bpf_map_lookup_elem(&usdt_open_calls, key);
	/* The end of one that the full map gave up; unless another end has just taken it, and changes the number. */
	if (!innermost && *(volatile __u64 *)open_spans(found) == open)
		__sync_fetch_and_add(open_spans(found), -1);
	return innermost;
}

/* Its number in the plan. */
static __always_inline __u32 pair_of(const struct ended_span *span)
{
	const __u32 begins = usdt_stock()->spans.begins, ends = usdt_stock()->spans.ends;

	return begins + ends + span->begin * ends + (span->end - begins);
}

/* Returns a fact that was known where the span began. */
#define USDT_FACT_CASE(name, value) \
	case USDT_BEGIN_##name:     \
		return value;
static __always_inline __u64 fact_of_beginning(const struct usdt_event *event, const __u32 fact)
{
	const struct usdt_owner *owner;

	switch (fact) {
		USDT_FACTS_OF_RECORD(USDT_FACT_CASE)
	}
	if (!usdt_stock()->spans.owner)
		return 0;
	owner = &behind_record(event)->owner;
	switch (fact) {
		USDT_FACTS_OF_OWNER(USDT_FACT_CASE)
	}
	return 0;
}
#undef USDT_FACT_CASE

/* The question about a span: of what it needs, the beginning's is in the record. */
static __always_inline struct usdt_question *
question_about_span(const struct usdt_ctx *ctx, const struct usdt_event *event, const struct ended_span *span)
{
	struct usdt_question *question = (struct usdt_question *)ctx->window;
	const struct usdt_event_arg *args = (const void *)event + sizeof(*event);
	const __u32 first = usdt_program()->first_arg;
	__u32 unread = 0;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < USDT_FILTER_VALUES; i++) {
		__u32 n = usdt_program()->filter_args[i];
		__u64 value = 0;
		bool failed = false;

		if (i >= usdt_program()->filter_values)
			break;
		asm volatile("" : "+r"(n));
		if (usdt_program()->filter_texts[i]) {
			failed = !find_kept_text(event, i, ENDS_SPANS, &value);
		} else if (is_of_context(n)) {
			failed = !context_word(event, n, &value);
		} else if (n >= USDT_BEGIN_FACTS) {
			value = fact_of_beginning(event, n);
		} else if (n < first) {
			value = args[n].bits;
			failed = args[n].error;
		} else {
			failed = usdt_filter_value(ctx, n - first, &value);
		}
		if (failed)
			unread |= 1u << i;
		usdt_put_value(question, i, value);
	}
	question->unread = usdt_unknown(unread);
	question->site = usdt_stock()->record.site_base + pair_of(span);
	question->duration = span->duration;
	return question;
}

static __always_inline void take_ender(struct usdt_ender *ender)
{
	const __u64 pid_tgid = usdt_pid_tgid();

	ender->pid = pid_tgid >> 32;
	ender->tid = (__u32)pid_tgid;
	bpf_get_current_comm(ender->comm, sizeof(ender->comm));
	ender->comm[sizeof(ender->comm) - 1] = USDT_ENDED;
}

/* The record of the beginning goes to the ring, with the values of the end. The room is checked once: verifiers before
 * Linux 5.11 do not know that a second look finds the same. */
static __always_inline void record_span(const struct usdt_ctx *ctx, const struct usdt_event *begun,
					struct usdt_span_key *key, const __u32 can, const struct ended_span *span,
					struct usdt_site_stats *stats)
{
	struct usdt_event *event;

	for (__u32 look = 0; look < 2; look++) {
		event = bpf_ringbuf_reserve(&usdt_events, usdt_stock()->record.size, 0);
		if (!event) {
			if (take_span(key, span, stats))
				count_lost(stats);
			return;
		}
		bpf_probe_read_kernel(event, usdt_stock()->record.size, begun);
		event->site = usdt_stock()->record.site_base + span->end; /* whose texts these are */
		event->arg_cnt = usdt_program()->first_arg + usdt_arg_cnt(ctx);
		fill_args(event, ctx, can, false);
		if (!may_wait(can) || look == 1 || !is_paged_out(event, can))
			break;
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
		page_in(ctx, can);
	}
	if (!take_span(key, span, stats)) {
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
		return;
	}
	event->duration = span->duration;
	event->site = usdt_stock()->record.site_base + pair_of(span);
	if (usdt_stock()->record.ender_at)
		take_ender((void *)event + usdt_stock()->record.ender_at);
	bpf_ringbuf_submit(event, wake_flags());
}

/* A span that ends becomes a row, of what its record says while it is there. */
static __always_inline void tally_span(const struct usdt_ctx *ctx, const struct usdt_event *event,
				       struct usdt_span_key *key, struct usdt_row *row, const __u32 can,
				       const struct ended_span *span, struct usdt_site_stats *stats)
{
	struct usdt_question *question = question_about_span(ctx, event, span);
	__u64 answer;

	*row = (struct usdt_row){};
	answer = usdt_compiled_row(question, row);
	if (take_span(key, span, stats) && !leaves_out(answer, stats))
		tally(row, question, can, stats);
}

/* `row`: of programs that fill a table. */
static __always_inline void end_span(const struct usdt_ctx *ctx, struct usdt_span_key *key, struct usdt_row *row,
				     const __u32 can, __u32 site, struct usdt_site_stats *stats)
{
	struct ended_span span = {.end = site, .duration = bpf_ktime_get_ns(), .first = key->part};
	struct usdt_event *event = find_span(key);
	__u64 answer;

	if (!event)
		return;
	if (usdt_stock()->guards.sample && !event->ts) {
		if (take_out(key, span.first))
			count_unsampled(stats);
		return;
	}
	span.begin = event->site - usdt_stock()->record.site_base;
	span.duration -= event->ts;
	if (can & FILLS_TABLE) {
		tally_span(ctx, event, key, row, can, &span, stats);
		return;
	}
	if (usdt_program()->filtered) {
		answer = usdt_compiled_answer(question_about_span(ctx, event, &span));
		usdt_end_question(ctx);
		if (answer != USDT_YES) {
			if (take_span(key, &span, stats))
				leaves_out(answer, stats);
			return;
		}
	}
	if (!is_slow_enough(span.duration)) {
		if (take_span(key, &span, stats))
			count_faster(stats);
	} else if (may_pass())
		record_span(ctx, event, key, can, &span, stats);
	else if (take_span(key, &span, stats))
		count_beyond_rate(stats);
}

static __always_inline void trace_span(const struct usdt_ctx *ctx, struct usdt_row *row, const __u32 can, __u32 site,
				       struct usdt_site_stats *stats)
{
	struct usdt_span_key key;

	if (!find_span_key(ctx, &key, can))
		__sync_fetch_and_add(&stats->unpaired, 1);
	else if (can & BEGINS_SPANS)
		begin_span(ctx, &key, can, site, stats);
	else
		end_span(ctx, &key, row, can, site, stats);
}

#endif /* USDT_TRACE_SPANS_H */
