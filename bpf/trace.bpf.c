/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The stock program behind usdt-trace: one ring record for each hit or call, every loss counted. */
#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "descends.h"
#include "trace/abilities.h"
#include "trace/calls.h"
#include "trace/counts.h"
#include "trace/guards.h"
#include "trace/hits.h"
#include "trace/owner.h"
#include "trace/spans.h"
#include "trace/wanted.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The consumer finds anew what goes and comes again under the same name. */
struct usdt_cgroup usdt_cgroups[USDT_MAX_CGROUPS] = {};

static __always_inline bool is_in_cgroup(void)
{
	for (__u32 i = 0; i < USDT_MAX_CGROUPS && i < usdt_stock()->cgroups; i++) {
		__u64 id = usdt_cgroups[i].id;

		if (id && bpf_get_current_ancestor_cgroup_id(usdt_cgroups[i].level) == id)
			return true;
	}
	return false;
}

/* Whether the process is one of those that are traced. */
static __always_inline bool is_traced(void)
{
	if (usdt_stock()->owner.checked && !is_of_owner())
		return false;
	if (usdt_stock()->family.ancestors.count && !descends())
		return false;
	return !usdt_stock()->cgroups || is_in_cgroup();
}

static __always_inline int trace(const struct usdt_ctx *ctx, const __u32 can)
{
	const bool calls = (can & MAKES_CALLS) && usdt_calls();
	__u32 site = usdt_site(ctx);
	struct usdt_site_stats *stats;
	struct usdt_row row; /* of programs that fill a table */

	if (!is_traced())
		return 0;
	stats = stats_of(site);
	if (!stats || (!ctx->spec && !usdt_is_packed(ctx)))
		return 0;
	if (calls && ctx->returns) {
		close_call(ctx, &row, can, site, stats);
		return 0;
	}
	/* Atomic although per CPU: another task's hit may preempt this one. */
	__sync_fetch_and_add(&stats->hits, 1);
	if (calls) {
		open_call(ctx, can, site, stats);
	} else if (can & FILLS_TABLE && can & ENDS_SPANS) {
		trace_span(ctx, &row, can, site, stats);
	} else if (can & (BEGINS_SPANS | ENDS_SPANS)) {
		trace_span(ctx, NULL, can, site, stats);
	} else if (!is_sampled()) {
		count_unsampled(stats);
	} else {
		record_hit(ctx, &row, can, site, stats, 0);
	}
	return 0;
}

USDT_PROGRAM(usdt_trace_hit)
{
	return trace(ctx, ASKS_NOTHING);
}

USDT_PROGRAM(usdt_trace_hit_where)
{
	return trace(ctx, 0);
}

/* Filter or not: without the filter's code, what clang 14 makes of twelve texts is more than a million instructions to
 * the verifier of Linux 6.18, and 550,000 with it. */
USDT_PROGRAM(usdt_trace_hit_memory)
{
	return trace(ctx, COPIES_MEMORY);
}

USDT_PROGRAM(usdt_trace_call)
{
	return trace(ctx, MAKES_CALLS);
}

USDT_PROGRAM(usdt_trace_call_memory)
{
	return trace(ctx, MAKES_CALLS | COPIES_MEMORY);
}

USDT_PROGRAM(usdt_trace_hit_steps)
{
	return trace(ctx, COPIES_MEMORY | TAKES_STEPS);
}

USDT_PROGRAM(usdt_trace_call_steps)
{
	return trace(ctx, MAKES_CALLS | COPIES_MEMORY | TAKES_STEPS);
}

USDT_PROGRAM(usdt_trace_table_hit)
{
	return trace(ctx, COPIES_MEMORY | FILLS_TABLE);
}

USDT_PROGRAM(usdt_trace_table_hit_extremes)
{
	return trace(ctx, COPIES_MEMORY | FILLS_TABLE | HAS_EXTREMES);
}

USDT_PROGRAM(usdt_trace_table_call)
{
	return trace(ctx, MAKES_CALLS | COPIES_MEMORY | TAKES_STEPS | FILLS_TABLE);
}

USDT_PROGRAM(usdt_trace_table_call_extremes)
{
	return trace(ctx, MAKES_CALLS | COPIES_MEMORY | TAKES_STEPS | FILLS_TABLE | HAS_EXTREMES);
}

USDT_PROGRAM(usdt_trace_table_hit_stacks)
{
	return trace(ctx, FILLS_TABLE | TAKES_STACKS);
}

USDT_PROGRAM(usdt_trace_table_hit_extremes_stacks)
{
	return trace(ctx, FILLS_TABLE | HAS_EXTREMES | TAKES_STACKS);
}

USDT_PROGRAM(usdt_trace_table_call_stacks)
{
	return trace(ctx, MAKES_CALLS | TAKES_STEPS | FILLS_TABLE | TAKES_STACKS);
}

USDT_PROGRAM(usdt_trace_table_call_extremes_stacks)
{
	return trace(ctx, MAKES_CALLS | TAKES_STEPS | FILLS_TABLE | HAS_EXTREMES | TAKES_STACKS);
}

USDT_PROGRAM(usdt_trace_span_begin)
{
	return trace(ctx, COPIES_MEMORY | TAKES_STEPS | BEGINS_SPANS);
}

USDT_PROGRAM(usdt_trace_span_end)
{
	return trace(ctx, COPIES_MEMORY | TAKES_STEPS | ENDS_SPANS);
}

USDT_PROGRAM(usdt_trace_table_span_end)
{
	return trace(ctx, COPIES_MEMORY | TAKES_STEPS | ENDS_SPANS | FILLS_TABLE);
}

USDT_PROGRAM(usdt_trace_table_span_end_extremes)
{
	return trace(ctx, COPIES_MEMORY | TAKES_STEPS | ENDS_SPANS | FILLS_TABLE | HAS_EXTREMES);
}

/* Hits are counted, and nothing else: no argument is read, so that sites of all specs share the program. */
static __always_inline int count_hit(__u32 site)
{
	struct usdt_site_stats *stats = stats_of(site);

	if (!stats)
		return 0;
	__sync_fetch_and_add(&stats->hits, 1);
	if (is_paused())
		count_unsampled(stats);
	return 0;
}

static __always_inline int count_hit_of(const struct usdt_ctx *ctx)
{
	return usdt_calls() && ctx->returns ? 0 : count_hit(usdt_site(ctx));
}

/* Written out instead of USDT_PROGRAM(), which begins with the hit's context: where there is one site, nothing about
 * the hit is asked, and the verifier removes that. */
SEC("uprobe")
int usdt_trace_count(void *regs)
{
	struct usdt_ctx ctx;

	usdt_keep_task_stack(regs);
	if (!usdt_in_scope() || !is_traced())
		return 0;
	if (usdt_program()->one_site && !usdt_calls())
		return count_hit(0);
	ctx = usdt_context(regs, NULL, false);
	return count_hit_of(&ctx);
}

/* Calls, too, of which a filter asks what is known once they end. */
USDT_PROGRAM(usdt_trace_count_calls_where)
{
	return trace(ctx, MAKES_CALLS | TAKES_STEPS | COUNTS_ONLY);
}

/* Hits that a filter lets pass where they begin. */
USDT_PROGRAM(usdt_trace_count_where)
{
	struct usdt_site_stats *stats;

	if (!is_traced())
		return 0;
	if (usdt_calls() && ctx->returns)
		return 0;
	stats = stats_of(usdt_site(ctx));
	if (!stats)
		return 0;
	__sync_fetch_and_add(&stats->hits, 1);
	if (is_sampled())
		is_hit_wanted(ctx, NULL, COPIES_MEMORY, stats, 0);
	else
		count_unsampled(stats);
	return 0;
}
