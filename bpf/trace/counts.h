/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Counts of the hits of each site, and the ring that their records go to. */
#ifndef USDT_TRACE_COUNTS_H
#define USDT_TRACE_COUNTS_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "../stock.h"

/* The consumer sets it before it sleeps; the next record wakes it. */
__u32 usdt_consumer_asleep = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} usdt_events SEC(".maps");

/* A busy consumer polls; only a sleeping one is woken, once. */
static __always_inline __u64 wake_flags(void)
{
	if (!usdt_consumer_asleep)
		return BPF_RB_NO_WAKEUP;
	usdt_consumer_asleep = 0;
	return BPF_RB_FORCE_WAKEUP;
}

/* Rows of one entry a site. A processor counts in one of them, so that it seldom waits for another; how many processors
 * there are need not be known exactly (what reads a per-CPU map must know: the kernel writes all of them). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct usdt_site_stats);
} usdt_stats SEC(".maps");

static __always_inline struct usdt_site_stats *stats_of(__u32 site)
{
	__u32 key =
	    site + (bpf_get_smp_processor_id() & usdt_stock()->counters.row_mask) * usdt_stock()->counters.row_size;

	return bpf_map_lookup_elem(&usdt_stats, &key);
}

static __always_inline void count_lost(struct usdt_site_stats *stats)
{
	__sync_fetch_and_add(&stats->ring_full, 1);
}

static __always_inline void count_unrowed(struct usdt_site_stats *stats)
{
	__sync_fetch_and_add(&stats->table_full, 1);
}

static __always_inline void count_unsampled(struct usdt_site_stats *stats)
{
	__sync_fetch_and_add(&stats->not_sampled, 1);
}

static __always_inline void count_beyond_rate(struct usdt_site_stats *stats)
{
	__sync_fetch_and_add(&stats->held_back, 1);
}

static __always_inline void count_faster(struct usdt_site_stats *stats)
{
	__sync_fetch_and_add(&stats->faster, 1);
}

#endif /* USDT_TRACE_COUNTS_H */
