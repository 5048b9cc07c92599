/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Abilities that set one stock program apart from another. */
#ifndef USDT_TRACE_ABILITIES_H
#define USDT_TRACE_ABILITIES_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "../stock.h"

/* Abilities of a program besides handing over the numbers of a hit. The kernel reads all of a program before it finds
 * out what its constants leave of it, so that programs with fewer abilities are attached sooner. */
enum abilities {
	COPIES_MEMORY = 1,     /* texts and the stack of the process; it waits for pages */
	MAKES_CALLS = 2,       /* of both ends one event */
	TAKES_STEPS = 4,       /* to members */
	FILLS_TABLE = 8,       /* hits become rows instead of events */
	BEGINS_SPANS = 32,     /* hits of one place are paired with those of another: */
	ENDS_SPANS = 64,       /* of both one event */
	HAS_EXTREMES = 16,     /* with the smallest and the largest value: instructions of Linux 5.12 */
	TAKES_STACKS = 128,    /* among their keys: of maps that programs which wait for pages may not have */
	MAKES_NO_RECORD = 256, /* what is kept of a call becomes a row, or is counted */
	COUNTS_ONLY = 512,     /* hits that a filter lets pass */
	ASKS_NOTHING = 1024,   /* there is no filter, whose question about a hit is half of a small program */
	KEEPS_TEXTS = 2048,    /* what is kept of a call has texts, as they were at its beginning */
};

/* Returns the abilities that a record needs: rows have neither stacks nor owners of records, and no texts but those
 * that the question at the end is about. */
static __always_inline __u32 for_records(const __u32 can)
{
	return can & (FILLS_TABLE | COUNTS_ONLY) ? (can & TAKES_STEPS) | MAKES_NO_RECORD | KEEPS_TEXTS : can;
}

/* Returns the arguments of the site that is hit, in its record: at the end of a span behind those of its beginning. */
static __always_inline struct usdt_event_arg *own_args(void *record, const __u32 can)
{
	const __u32 first = can & ENDS_SPANS ? usdt_program()->first_arg : 0;

	return record + sizeof(struct usdt_event) + first * sizeof(struct usdt_event_arg);
}

static __always_inline __u32 args_of_record(const __u32 can)
{
	return can & (BEGINS_SPANS | ENDS_SPANS) ? usdt_stock()->record.args : usdt_program()->max_args;
}

static __always_inline bool may_wait(const __u32 can)
{
	return (can & COPIES_MEMORY) && usdt_stock()->may_sleep && usdt_source() == USDT_SOURCE_USER;
}

#endif /* USDT_TRACE_ABILITIES_H */
