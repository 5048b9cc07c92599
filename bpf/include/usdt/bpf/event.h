/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The record the stock program writes for one hit: one layout for the BPF program and its consumer.
 *
 *     struct usdt_event        header
 *     struct usdt_event_arg    [max_args of the plan]
 *     char                     [string slots of the plan][string capacity of the plan]
 *
 * Every record of one plan has the same size, known at load: it is reserved in the ring and filled in place, so nothing
 * is copied, and a hit that preempts another on the same CPU cannot disturb its record. */
#ifndef USDT_BPF_EVENT_H
#define USDT_BPF_EVENT_H

#include "types.h"

struct usdt_event {
	__u64 ts;  /* CLOCK_MONOTONIC, ns */
	__u64 ip;  /* address of the breakpoint in the process */
	__u32 pid; /* thread group, in the tracer's pid namespace */
	__u32 tid;
	__u32 cpu;
	__u32 site; /* the plan's site number */
	char comm[16];
	__u32 arg_cnt; /* entries of args[] that are filled */
	__u32 reserved;
};

struct usdt_event_arg {
	__u64 bits;  /* the value, extended by its sign to 64 bits; floats as their bits */
	__s32 error; /* 0, or a negative errno: -EFAULT user memory could not be read, -EOPNOTSUPP unreadable operand,
		      * -ENODATA no BTF for a thread-local one */
	__s32 text;  /* captured text: its bytes with the NUL, or a negative errno; 0: none was asked for */
};

/* Per site and CPU. hits = delivered + every lost reason. */
struct usdt_site_stats {
	__u64 hits;
	__u64 ring_full;
};

#ifdef __cplusplus
static_assert(sizeof(usdt_event) == 56, "ring record header");
static_assert(sizeof(usdt_event_arg) == 16, "ring record argument");
#else
_Static_assert(sizeof(struct usdt_event) == 56, "ring record header");
_Static_assert(sizeof(struct usdt_event_arg) == 16, "ring record argument");
#endif

#endif /* USDT_BPF_EVENT_H */
