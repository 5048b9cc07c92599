/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Guards that leave hits out on purpose, so that a trace costs no more than it may. */
#ifndef USDT_TRACE_GUARDS_H
#define USDT_TRACE_GUARDS_H

#include <usdt/bpf/usdt.bpf.h>
#include "../stock.h"

/* While it is set, hits are counted and nothing else: the sites are being attached or detached, which takes a while,
 * and estimates want to know of each hit that is looked at when it was. */
__u32 usdt_paused = 0;

static __always_inline bool is_paused(void)
{
	return usdt_stock()->guards.pausable && *(volatile __u32 *)&usdt_paused;
}

/* Whether a hit is among those that are looked at. By chance: every hundredth one would always be the same one of a
 * program that does a hundred things in turn. */
static __always_inline bool is_sampled(void)
{
	const __u32 sample = usdt_stock()->guards.sample;

	if (is_paused())
		return false;
	return sample <= 1 || ((__u64)bpf_get_prandom_u32() * sample) >> 32 == 0;
}

/* Until when the events so far have paid, in units of a price, from the start. */
__u64 usdt_rate_paid = 0;

/* Whether an event may come now, which then has paid. Processors that look at the same time may all be let in, one
 * event each; they have paid, too, so that it does not add up. (An exchange that knows better is of Linux 5.12.) */
static __always_inline bool may_pass(void)
{
	const __u64 price = usdt_stock()->guards.rate_price, second = 1000000000ull << USDT_RATE_SHIFT;
	volatile __u64 *paid = &usdt_rate_paid;
	__u64 now, until;

	if (!price)
		return true;
	now = (bpf_ktime_get_ns() - usdt_stock()->guards.rate_start) << USDT_RATE_SHIFT;
	until = *paid;
	if (until + price > now)
		return false;
	if (until + second < now)
		*paid = now - second;
	__sync_fetch_and_add(&usdt_rate_paid, price);
	return true;
}

/* The least duration of a call or span that becomes an event, ns. The consumer keeps those that took longest, and sets
 * it to the duration of the shortest of them: it only grows. */
__u64 usdt_least_duration = 0;

static __always_inline bool is_slow_enough(__u64 duration)
{
	return !usdt_stock()->guards.slow_only || duration >= *(volatile __u64 *)&usdt_least_duration;
}

#endif /* USDT_TRACE_GUARDS_H */
