/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The record the stock program writes for one hit: one layout for the BPF program and its consumer.
 *
 *     struct usdt_event        header
 *     struct usdt_event_arg    [max_args of the plan; of spans those of the beginning, then those of the end]
 *     __u64                    [stack depth of the trace]    addresses in the kernel, innermost first
 *     char                     [string slots of the plan][string capacity of the plan]
 * and where the stack of the process is wanted, from a multiple of 8 on,
 *     struct usdt_user_stack
 *     __u64                    [user stack depth]            addresses in the process, innermost first
 *     char                     [piece][pieces + 1]           what is on the stack, from the stack pointer on
 * and where it is wanted whose the process is, last
 *     struct usdt_owner
 *
 * Every record of one plan has the same size, known at load: it is reserved in the ring and filled in place, so nothing
 * is copied, and a hit that preempts another on the same CPU cannot disturb its record. */
#ifndef USDT_BPF_EVENT_H
#define USDT_BPF_EVENT_H

#include "types.h"

struct usdt_event {
	__u64 ts; /* CLOCK_MONOTONIC, ns; calls and spans: of their beginning, as all else that is here */
	__u64 ip; /* address of the breakpoint in the process; 0 at kernel functions, whose address the plan has */
	__u64 duration; /* ns; calls and spans, else 0 */
	__u32 pid;	/* thread group, in the tracer's pid namespace */
	__u32 tid;
	__u32 cpu;
	__u32 site; /* the site's number in the trace's plan; of a span that of its pair of sites */
	char comm[16];
	__u32 arg_cnt;	  /* entries of args[] that are filled */
	__s32 stack_size; /* bytes of the stack, or a negative errno */
};

struct usdt_event_arg {
	__u64 bits;  /* the value, extended by its sign to 64 bits; floats as their bits. Where a step to it failed, the
		      * address that could not be read */
	__s32 error; /* 0, or a negative errno: -EFAULT user memory could not be read, -EOPNOTSUPP unreadable operand,
		      * -ENODATA no BTF for a thread-local one */
	__s32
	    text; /* captured text: its bytes and 1 more (the NUL, or of texts with a length nothing), or a negative
		   * errno, -ERANGE a length below 0; 0: none was asked for. Where a step failed, its number, from 1 */
};

/* A call that a return probe waits for: its return address is replaced by the probe's. */
struct usdt_replaced_return {
	__u64 address; /* what was there; 0: none, behind the last one */
	__u64 stack;   /* x86: where it was; arm64: the stack pointer at the entry */
};
#define USDT_REPLACED_RETURNS 16

/* The stack of the process: of the hit, or, in the kernel, of where it was entered. */
#define USDT_USER_REGS 33
struct usdt_user_stack {
	__s32 size;		    /* bytes of the addresses that were found by frame pointers, or a negative errno */
	__u32 copied;		    /* bytes of the copy */
	__u64 regs[USDT_USER_REGS]; /* by their numbers in specs (pt_regs.h) */
	struct usdt_replaced_return returns[USDT_REPLACED_RETURNS]; /* innermost first */
};

/* Whose the process is. */
struct usdt_owner {
	__u64 uid_gid; /* as bpf_get_current_uid_gid() has it: the user in the lower half */
	__u64 cgroup;  /* bpf_get_current_cgroup_id() */
};

/* Per site, in as many rows as there are processors, about. hits = delivered + not_sampled + rejected + undecided +
 * held_back + faster + every lost reason + calls that have not ended. */
struct usdt_site_stats {
	__u64 hits;
	__u64 ring_full;
	__u64 calls_full;  /* more calls or spans at once than there is room for */
	__u64 ended;	   /* calls; of both sites of spans those that ended */
	__u64 rejected;	   /* by the filter (filter.h) */
	__u64 undecided;   /* the filter had no answer */
	__u64 table_full;  /* hits for which there was no row */
	__u64 unpaired;	   /* what pairs the ends of spans could not be read */
	__u64 not_sampled; /* by chance, or while usdt_paused is set; of both sites of spans those whose beginning was
			      not */
	__u64 held_back;   /* more a second than were asked for */
	__u64 faster;	   /* calls and spans that took less than usdt_least_duration */
};

/* What is told of the hits of one row (struct usdt_row of filter.h). The sum is that of three pieces, which are of 22,
 * 22 and 20 bits of each value and fit for 2^42 hits, whatever the values; the extremes are of the values with the top
 * bit as usdt_stock_constants.value_bias says, as signed numbers. */
#define USDT_TALLY_BITS 22
struct usdt_tally {
	__u64 count;
	__u64 low;    /* of the values' lowest USDT_TALLY_BITS bits, */
	__u64 middle; /* of as many above them, */
	__u64 high;   /* and of the rest, with the sign */
	__u64 minimum;
	__u64 maximum;
};

/* Behind the tally of reals that are added up their exact sum, in units of the smallest real above 0: piece N is of
 * 2^(N * USDT_SUM_BITS) of them, with a sign, and a real changes three of them by less than 2^USDT_SUM_BITS each. Then
 * how many were infinite, and how many of those negative. */
#define USDT_SUM_BITS 26
#define USDT_SUM_PIECES32 12 /* of floats */
#define USDT_SUM_PIECES64 81 /* of doubles */
#define USDT_SUM_INFINITIES 2

/* Of arguments that may point to text, the first so many of a site are tried. */
#define USDT_LIKELY_ARGS 16
struct usdt_misreads {
	__u8 of_arg[USDT_LIKELY_ARGS];
};

/* One call that has not ended, in the table of those: its record so far. */
struct usdt_call_key {
	__u64 frame;	 /* usdt_frame(), or of sessions the time of the entry or up to 7 ns later */
	__u64 goroutine; /* of Go; `frame` is the depth of its stack then, and `tid` the process */
	__u32 tid;
	__u32 site;
};

/* The same of spans, as it begins in a row (filter.h): so many of the words of keys pair their ends. */
#define USDT_PAIR_WORDS 4
struct usdt_span_key {
	__u64 part; /* how many spans with these keys had begun and not ended when this one did */
	__u64 key[USDT_PAIR_WORDS];
};

/* What is behind the record of a span that has not ended. */
struct usdt_open_span {
	__u64 open; /* of the outermost with these keys: how many there are, once its record is complete */
	__u64 lost; /* and how many began within them since, for which there was no room: their ends come first */
	struct usdt_owner owner; /* with usdt_stock_constants::span_owner: whose it is */
};

#ifdef __cplusplus
static_assert(sizeof(usdt_event) == 64, "ring record header");
static_assert(sizeof(usdt_event_arg) == 16, "ring record argument");
static_assert(sizeof(usdt_user_stack) == 528, "ring record user stack");
#else
_Static_assert(sizeof(struct usdt_event) == 64, "ring record header");
_Static_assert(sizeof(struct usdt_event_arg) == 16, "ring record argument");
_Static_assert(sizeof(struct usdt_user_stack) == 528, "ring record user stack");
#endif

#endif /* USDT_BPF_EVENT_H */
