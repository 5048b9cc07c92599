/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The constants that user space writes into each copy of a program before it is loaded. The verifier knows them, and
 * removes the code that does not apply. One layout for BPF programs, C and C++; a change raises USDT_SPEC_VERSION. A
 * field that user space did not write is zero, which means "none" or "not known". */
#ifndef USDT_BPF_CONSTANTS_H
#define USDT_BPF_CONSTANTS_H

#include "processes.h"
#include "spec.h"

/* Says where the program sits, and how specs reach it. Every program that includes usdt.bpf.h has these. */
struct usdt_program_constants {
	__u64 user_cookie;    /* the application's cookie, where specs are packed in cookies: one for all sites */
	__u32 carriers;	      /* USDT_CARRIER_BIT of the program's carrier, perhaps with IP_HASH or FIXED */
	__u32 max_args;	      /* the most arguments of a site of the plan */
	__u32 site_bits;      /* width of the site number in packed cookies; above 30: they have none */
	__u32 ip_group;	      /* on kernels without attach cookies: the program's number in USDT_IP_KEY */
	__u32 values_by_site; /* per-link: bit N: the value (displacement or constant) of argument N differs between
			       * the program's sites, and is in usdt_specs */
	__u8 source;	      /* enum usdt_source: what the program is given */
	__u8 moment;	      /* enum usdt_moment: the ends of a call that it runs at */
	__u8 calls;	    /* its sites are calls, of whose ends a session runs at both, or two programs at one each */
	__u8 one_site;	    /* the plan has one site, whose number therefore is in no cookie */
	__u8 packed_regs;   /* packed cookies have only registers, so that argument N is at a known place */
	__u8 windows;	    /* some spec of the plan has windows (memory.h) */
	__u16 max_entries;  /* the most entries of a spec of the plan: arguments and steps */
	__u8 max_steps;	    /* the most steps of a value */
	__u8 return_by;	    /* enum usdt_return_by */
	__u8 filtered;	    /* only hits count for which a question is answered by yes (filter.h) */
	__u8 filter_values; /* how many arguments that question reads */
	/* Per-link: the spec itself, a struct usdt_spec with room for USDT_LINK_ENTRIES entries. */
	__u64 link_spec[(sizeof(struct usdt_spec) + USDT_LINK_ENTRIES * sizeof(struct usdt_arg_spec)) / 8];
	struct usdt_processes scope;	      /* only hits of these processes count, or, with scope_left_out, only
					       * those of others; none: all count */
	__u8 filter_args[USDT_FILTER_VALUES]; /* the arguments that the question reads; at the end of a span numbers
					       * among the span's arguments, or of enum usdt_begin_fact (filter.h) */
	__u8 pair_args[USDT_FILTER_VALUES];   /* spans: the arguments of this site that pair their ends */
	__u8 pair_values;		      /* how many those are */
	__u8 span_side;			      /* enum usdt_span_side */
	__u8 first_arg;	     /* where in a record the arguments of its site begin; at the end of a span behind those of
			      * the beginning */
	__u8 first_text;     /* where in a record its string slots begin, likewise */
	__u8 at_entry;	     /* its sites are first instructions of functions */
	__u8 tracer_frames;  /* so many innermost frames of the kernel's stack are the program's and its callers' */
	__u8 scope_left_out; /* hits of `scope` do not count, those of all others do */
	/* At the end of a span or call: which values of the question are texts that the record has had since its
	 * beginning (USDT_KEPT_TEXT); 0: none. */
	__u8 filter_texts[USDT_FILTER_VALUES];
	__u8 reserved_too[3];
};

/* Describes the kernel that the program runs on. Every program that includes usdt.bpf.h has these. */
struct usdt_kernel_constants {
	/* Device and inode number of the tracer's pid namespace (/proc/self/ns/pid); 0: it is the initial one. */
	__u64 pidns_dev;
	__u64 pidns_ino;
	/* Some argument of the plan has USDT_ARG_THREAD. The next two are where the kernel keeps a thread's pointer, as
	 * usdt_thread_base() reads it: byte offsets in task_struct, from the kernel's BTF; 0: not known. */
	__u32 thread_args;
	__u32 thread_fsbase_offset;
	__u32 thread_tls_offset;
	__u32 reserved;
};

USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_program_constants, source) == 28);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_program_constants, windows) == 33);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_program_constants, link_spec) == 40);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_program_constants, scope) == 8248);
USDT_STATIC_ASSERT(sizeof(struct usdt_program_constants) == 8536);
USDT_STATIC_ASSERT(sizeof(struct usdt_kernel_constants) == 32);

#ifdef __bpf__
/* Defines the variable WHAT_constants, and WHAT() to read it as a struct WHAT_constants. The variable is an array of
 * words: `bpftool gen skeleton` prints the type of each constant, and a header of its making has no definition of a
 * struct with a name. */
#define USDT_CONSTANTS(what)                                                                                   \
	const volatile __u64 what##_constants[sizeof(struct what##_constants) / 8] __attribute__((weak)) = {}; \
	static inline __attribute__((always_inline)) const volatile struct what##_constants *what(void)        \
	{                                                                                                      \
		return (const volatile struct what##_constants *)what##_constants;                             \
	}
#endif

#endif /* USDT_BPF_CONSTANTS_H */
