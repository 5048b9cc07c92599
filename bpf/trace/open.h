/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Calls and spans that have begun and not ended: their records wait here for their ends. */
#ifndef USDT_TRACE_OPEN_H
#define USDT_TRACE_OPEN_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>

/* Records of calls that have not ended; the loader gives it the size of a record. If it is full, the kernel gives up
 * the calls that were looked at longest ago: some calls never end. The number of those that are left tells how many it
 * gave up. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct usdt_call_key));
	__uint(value_size, sizeof(struct usdt_event));
} usdt_open_calls SEC(".maps");

/* One record of zeros, what a new entry of usdt_open_calls is made from. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct usdt_event));
} usdt_blank SEC(".maps");

/* Takes a call that ends out; false: it was given up meanwhile. */
static __always_inline bool take_call(const struct usdt_call_key *key, struct usdt_site_stats *stats)
{
	if (bpf_map_delete_elem(&usdt_open_calls, key))
		return false;
	__sync_fetch_and_add(&stats->ended, 1);
	return true;
}

#endif /* USDT_TRACE_OPEN_H */
