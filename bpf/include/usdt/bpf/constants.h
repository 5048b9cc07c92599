/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What user space tells a copy of a program before it is loaded: constants to the verifier, which removes what does not
 * apply. One layout for BPF programs, C and C++; a change raises USDT_SPEC_VERSION. All zeros: nothing was told. */
#ifndef USDT_BPF_CONSTANTS_H
#define USDT_BPF_CONSTANTS_H

#include "processes.h"
#include "spec.h"

/* What the program is: where it sits, and how specs reach it. Of each program that includes usdt.bpf.h. */
struct usdt_program_constants {
	__u64 user_cookie;    /* the application's cookie, where it is the same for all sites */
	__u32 carriers;	      /* USDT_CARRIER_BIT of the program's carrier, perhaps with IP_HASH or FIXED */
	__u32 max_args;	      /* longest argument list of the plan */
	__u32 site_bits;      /* bits of the site number in packed cookies; above 30: they hold none */
	__u32 ip_group;	      /* kernels without attach cookies: this program's part of the sites */
	__u32 values_by_site; /* per-link: bit N: the value (displacement or constant) of argument N differs between
			       * the program's sites, and is in the table */
	__u8 source;	      /* enum usdt_source: what the program is given */
	__u8 moment;	      /* enum usdt_moment: the ends of a call it runs at */
	__u8 calls;	      /* its sites are whole calls: it runs at both ends, as a session or as two programs */
	__u8 one_site;	      /* the plan has one site: its number needs no cookie */
	__u8 packed_regs;     /* packed cookies are of registers alone, so that argument N is at a known place */
	__u8 windows;	      /* some spec of the plan has windows */
	__u16 max_entries;    /* of the plan's specs: arguments and steps */
	__u8 max_steps;	      /* of any value */
	__u8 return_by;	      /* enum usdt_return_by */
	__u8 filtered;	      /* hits count only where a question about them is answered by yes (filter.h) */
	__u8 filter_values;   /* arguments that it reads */
	/* per-link: the spec itself, a struct usdt_spec with USDT_LINK_ENTRIES arguments and steps */
	__u64 link_spec[(sizeof(struct usdt_spec) + USDT_LINK_ENTRIES * sizeof(struct usdt_arg_spec)) / 8];
	struct usdt_processes scope;	      /* hits of others do not count; none: all do */
	__u8 filter_args[USDT_FILTER_VALUES]; /* their numbers; of an end of spans among the span's */
	__u8 pair_args[USDT_FILTER_VALUES];   /* of spans: the same of what pairs them, among the site's own */
	__u8 pair_values;
	__u8 span_side;	    /* enum usdt_span_side */
	__u8 first_arg;	    /* of its site in the record: of an end of spans behind those of the beginning */
	__u8 first_text;    /* the same of its string slots */
	__u8 at_entry;	    /* its sites are first instructions of functions */
	__u8 tracer_frames; /* innermost frames of the kernel's stacks that are its own and those of what called it */
	__u8 reserved_too[2];
};

/* What the kernel is. Of each program that includes usdt.bpf.h. */
struct usdt_kernel_constants {
	__u64 pidns_dev; /* the tracer's pid namespace, where that is not the initial one */
	__u64 pidns_ino;
	__u32 thread_args; /* some argument of the plan has USDT_ARG_THREAD, and the next two say where threads keep it:
			    * byte offsets in task_struct, from the kernel's BTF; 0: unknown */
	__u32 thread_fsbase_offset;
	__u32 thread_tls_offset;
	__u32 reserved;
};

/* What the stock programs do, usdt_trace_* and those that follow forks. */
struct usdt_stock_constants {
	__u32 record_size;
	__u32 string_slots;
	__u32 string_size; /* bytes of one slot */
	__u32 stack_depth; /* addresses */
	/* Rows of usdt_stats less 1, and entries of a row. */
	__u32 stats_row_mask;
	__u32 stats_row_size;
	__u32 may_sleep; /* programs on sites of files are loaded as sleepable */
	/* Only processes that descend from one of these count (a traced command and its children); none: all do. Their
	 * numbers are the kernel's own, of the initial pid namespace. */
	struct usdt_processes ancestors;
	__u32 ancestors_count; /* themselves, too */
	/* Byte offsets in task_struct, where there is an ancestor. */
	__u32 task_pid_offset;
	__u32 task_tgid_offset;
	__u32 task_parent_offset;
	__u32 task_signal_offset;
	__u32 task_exit_signal_offset;
	__u32 user_stack_at;	/* where struct usdt_user_stack is in a record; 0: nowhere */
	__u32 user_stack_depth; /* addresses */
	__u32 user_copy_piece;	/* bytes, a power of two */
	__u32 user_copy_pieces; /* behind what goes up to a multiple of those */
	/* Byte offsets on the way to the calls of a thread that return probes wait for; 0: not known. */
	__u32 task_utask_offset;
	__u32 utask_returns_offset;
	__u32 return_address_offset; /* in struct return_instance, and the next two */
	__u32 return_stack_offset;
	__u32 return_next_offset;
	__u32 table_part_mask; /* parts of a table less 1 */
	__u64 value_bias;      /* of a table's values: the top bit where they are unsigned */
	__u32 site_base;       /* what records add to the plan's site number, for sites that were added to a trace */
	__u32 cgroups;	       /* entries of usdt_cgroups: only processes in one of these count; 0: all do */
	__u32 record_args;     /* entries of args[] in a record */
	/* Sites of the plan: the first so many begin spans, the next so many end them, and behind them there is one for
	 * each pair of those, the ends of the first beginning first. */
	__u32 span_begins;
	__u32 span_ends;
	__u32 sample; /* of the hits one in so many is looked at, by chance; 0 and 1: all are */
	/* At most so many events a second: each pays a price, in units of 2^-USDT_RATE_SHIFT ns, and a second's worth
	 * is there at most. Time is counted from the start, which is a second before that of the trace. 0: no limit. */
	__u64 rate_price;
	__u64 rate_start;
	/* Of a table with stacks among its keys the byte in usdt_row::key where they are, and 1 more; 0: there is none.
	 */
	__u8 row_user_stack;
	__u8 row_kernel_stack;
	__u8 pausable;	 /* usdt_paused of guards.h is looked at */
	__u8 span_owner; /* some question about spans is about whose they are */
	__u8 slow_only;	 /* usdt_least_duration of guards.h is looked at */
	__u8 owners;	 /* at the end of each record is a struct usdt_owner */
	__u8 sum_pieces; /* of a table's exact sum of reals: USDT_SUM_PIECES32 or 64; 0: there is none */
	__u8 reserved;
};
#define USDT_RATE_SHIFT 6 /* 2^58 ns are nine years */

/* A cgroup (v2) whose processes, and those of what is below it, count. */
struct usdt_cgroup {
	__u64 id;    /* 0: it is not there */
	__u32 level; /* below the root of the tree, whose level is 0 */
	__u32 reserved;
};
#define USDT_MAX_CGROUPS 8

USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_program_constants, source) == 28);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_program_constants, windows) == 33);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_program_constants, link_spec) == 40);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_program_constants, scope) == 8248);
USDT_STATIC_ASSERT(sizeof(struct usdt_program_constants) == 8528);
USDT_STATIC_ASSERT(sizeof(struct usdt_kernel_constants) == 32);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_stock_constants, ancestors) == 28);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_stock_constants, ancestors_count) == 288);
USDT_STATIC_ASSERT(sizeof(struct usdt_stock_constants) == 408);

#ifdef __bpf__
/* The variable WHAT_constants, and WHAT() to read it as the struct of that name. It is made of words, since `bpftool
 * gen skeleton` prints the type of each constant, and defines no structure that has a name. */
#define USDT_CONSTANTS(what)                                                                                   \
	const volatile __u64 what##_constants[sizeof(struct what##_constants) / 8] __attribute__((weak)) = {}; \
	static inline __attribute__((always_inline)) const volatile struct what##_constants *what(void)        \
	{                                                                                                      \
		return (const volatile struct what##_constants *)what##_constants;                             \
	}
#endif

#endif /* USDT_BPF_CONSTANTS_H */
