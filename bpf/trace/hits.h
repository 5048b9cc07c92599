/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* One hit, from the question whether it counts to its record in the ring. */
#ifndef USDT_TRACE_HITS_H
#define USDT_TRACE_HITS_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "abilities.h"
#include "counts.h"
#include "guards.h"
#include "record.h"
#include "wanted.h"

/* A hit, or the end of a call whose arguments are still there (`start`: when it began). Memory that is paged out is
 * waited for, and looked at once more: the verifier goes through each look anew. */
static __always_inline void record_hit(const struct usdt_ctx *ctx, struct usdt_row *row, const __u32 can, __u32 site,
				       struct usdt_site_stats *stats, __u64 start)
{
	struct usdt_event *event;
	__u64 now = 0;

	if (!is_hit_wanted(ctx, row, can, stats, start) || (can & (FILLS_TABLE | COUNTS_ONLY)))
		return;
	if (start && !is_slow_enough(bpf_ktime_get_ns() - start)) {
		count_faster(stats);
		return;
	}
	if (!may_pass()) {
		count_beyond_rate(stats);
		return;
	}
	for (__u32 look = 0; look < 2; look++) {
		event = bpf_ringbuf_reserve(&usdt_events, usdt_stock()->record.size, 0);
		if (!event) {
			count_lost(stats);
			return;
		}
		event->duration = 0;
		fill(event, ctx, can, site, usdt_pid_tgid());
		if (!may_wait(can) || look == 1 || !is_paged_out(event, can))
			break;
		/* Not while the record is held: the consumer cannot pass it, and the process may wait for ever. */
		now = event->ts;
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
		page_in(ctx, can);
	}
	if (now)
		event->ts = now;
	if (start) {
		event->duration = event->ts - start;
		event->ts = start;
	}
	bpf_ringbuf_submit(event, wake_flags());
}

#endif /* USDT_TRACE_HITS_H */
