/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The record that the stock program writes for one hit: one layout for the BPF program and for its consumer. The sizes
 * in brackets are constants of the program (stock_constants.h).
 *
 *     struct usdt_event        the header
 *     struct usdt_event_arg    [record.args]                 values; of a span those of its beginning, then of its end
 *     __u64                    [record.stack_depth]          addresses in the kernel, innermost first
 *     char                     [record.string_slots][record.string_size]
 *                                                            captured texts
 * If the stack of the process is recorded there follows, aligned to 8 bytes,
 *     struct usdt_user_stack
 *     __u64                    [user_stack.depth]            addresses in the process, innermost first
 *     char                     [user_stack.copy_piece][user_stack.copy_pieces + 1]
 *                                                            copy of the stack, from the stack pointer on
 * and, if functions of scripts are recorded,
 *     struct usdt_script_stack
 *     struct usdt_script_frame [scripts.depth]               functions of a script, innermost first
 * and if spans may end in other threads than they began in
 *     struct usdt_ender
 * and if it is recorded what the thread works for
 *     struct usdt_thread_context
 * and with its attributes
 *     struct usdt_thread_attributes
 * and if it is recorded whose the process is, last
 *     struct usdt_owner
 *
 * All records of a plan have one size, which is known when the program is loaded. A record is reserved in the ring and
 * filled in place: nothing is copied, and a hit that preempts another one on the same CPU cannot disturb its record. */
#ifndef USDT_BPF_EVENT_H
#define USDT_BPF_EVENT_H

#include "thread_context.h"
#include "types.h"

struct usdt_event {
	__u64 ts;	/* ns of CLOCK_MONOTONIC. Of a call or span this and all that follows is of its beginning */
	__u64 ip;	/* address of the site in the process; 0 at kernel functions, whose address the plan has */
	__u64 duration; /* how long the call or span took, ns; of hits 0 */
	__u32 pid;	/* thread group, as the tracer's pid namespace numbers it; 0: not visible there */
	__u32 tid;	/* thread, likewise */
	__u32 cpu;
	__u32 site; /* the site's number in the plan of the trace; of a span the number of its pair of sites */
	char comm[16];
	__u32 arg_cnt;	  /* so many struct usdt_event_arg are filled */
	__s32 stack_size; /* size of the kernel's stack in bytes, or a negative errno */
};

struct usdt_event_arg {
	/* The value, extended by its sign to 64 bits; the bits of a float; or, if a step to it failed, the address that
	 * could not be read. */
	__u64 bits;
	/* 0: there is a value. Else a negative errno: -EFAULT memory could not be read, -EOPNOTSUPP the operand is
	 * unreadable, -ENODATA the value is not there at this end of a call, or thread-local and the kernel has no BTF
	 * that says where threads keep theirs. */
	__s32 error;
	/* Size of the captured text in bytes, and 1 more: its NUL, or nothing if the text came with a length. 0: no
	 * text was asked for. Else a negative errno; -ERANGE: the length is below 0. If a step failed: its number, from
	 * 1. */
	__s32 text;
};

/* A call that a return probe waits for: the kernel has replaced its return address by one of its own. */
struct usdt_replaced_return {
	__u64 address; /* the return address that was replaced; 0: behind the last one */
	__u64 stack;   /* x86: where on the stack it was; arm64: the stack pointer at the entry of the function */
};
#define USDT_REPLACED_RETURNS 16

/* The stack of the process at the hit; at a hit in the kernel, where the process entered the kernel. */
#define USDT_USER_REGS 33
struct usdt_user_stack {
	__s32 size;   /* size of the addresses, which frame pointers led to, in bytes; or a negative errno */
	__u32 copied; /* size of the copy in bytes */
	__u64 regs[USDT_USER_REGS];				    /* by their numbers in specs (pt_regs.h) */
	struct usdt_replaced_return returns[USDT_REPLACED_RETURNS]; /* innermost first */
};

/* How far the functions of a script could be followed at a hit. */
enum usdt_script_state {
	USDT_SCRIPT_NONE = 0,	      /* the process is not known to run an interpreter */
	USDT_SCRIPT_COMPLETE = 1,     /* up to the outermost one */
	USDT_SCRIPT_CUT = 2,	      /* there are more than the record has room for */
	USDT_SCRIPT_OTHER_THREAD = 3, /* the interpreter does not know this thread: it runs native code alone */
	USDT_SCRIPT_UNREADABLE = 4,   /* up to one whose memory is not there now */
	USDT_SCRIPT_INCONSISTENT = 5, /* up to one that does not fit to those before */
	USDT_SCRIPT_OTHER_IMAGE = 6,  /* the process runs another program than the one that was known */
	USDT_SCRIPT_MOST_THREADS = 7, /* the thread is not among the first of the interpreter's many threads */
};

/* Interpreters whose functions can be followed. */
enum usdt_runtime {
	USDT_RUNTIME_NONE = 0,
	USDT_RUNTIME_CPYTHON = 1,
	USDT_RUNTIME_PHP = 2,
	USDT_RUNTIME_RUBY = 3,
};

/* A function of a script that was running. */
#define USDT_SCRIPT_ENTRY 1 /* called from native code: the outermost one of its activation */
#define USDT_SCRIPT_MARK 2  /* no function: it tells nothing but where its activation is */
#define USDT_SCRIPT_IN_C 4  /* a function written in C: `code` is the address of its method */
#define USDT_SCRIPT_OWNER 8 /* in the bits from here on: who owns the frame, as the interpreter numbers that */
struct usdt_script_frame {
	__u64 code;	   /* address of its code object */
	__u64 cookie;	   /* usdt_code_cookie() at the hit; 0: its code object could not be read */
	__u64 instruction; /* address of the instruction */
	/* Where the call of the interpreter's loop that runs it has its frame on the native stack; 0: the outermost
	 * frame of the activation says it. USDT_WALK_STACK: the address of its own frame. */
	__u64 activation;
	__u32 flags; /* USDT_SCRIPT_* */
	__u32 reserved;
};

/* The functions of a script, from the hit outwards. They are copied from memory of the interpreter, which stands still
 * in this thread, and are named later. */
#define USDT_CODE_ROOM 16 /* words; a power of two, so that any index can be made to fit */
struct usdt_script_stack {
	__u32 state;   /* enum usdt_script_state */
	__u32 count;   /* so many struct usdt_script_frame are filled */
	__u16 runtime; /* enum usdt_runtime */
	__u16 version; /* as in struct usdt_interpreter */
	__u32 reserved;
	/* Room of the program, which has little on its own stack. */
	__u64 at;
	__u64 next;
	__u64 activation;
	__u64 word;
	__u64 code[USDT_CODE_ROOM];
};
#define USDT_MOST_SCRIPT_FRAMES 128

/* The thread that ended a span, numbered as usdt_event::pid and tid are. The last byte of its name, which the kernel
 * has no use for, says that there is one: a thread of another pid namespace has no number, and any may have no name. */
#define USDT_ENDED 1
struct usdt_ender {
	__u32 pid;
	__u32 tid;
	char comm[16];
};

/* The user, group, cgroup and parent of the process. */
struct usdt_owner {
	__u64 uid_gid; /* bpf_get_current_uid_gid(): the user in the lower half, the group in the upper one */
	__u64 cgroup;  /* bpf_get_current_cgroup_id() */
	__s64 parent;  /* the parent process, as the initial pid namespace numbers it; 0: none; or USDT_NO_PARENT */
};
#define USDT_NO_PARENT (-1) /* the kernel has no BTF, or what is recorded is older */

/* Counts what became of the hits of one site, in 64 bits each. There is about one row of these for each processor,
 * which user space adds up. Each number but `hits`, `ended` and `unpaired` is of hits that became no event; the other
 * hits became one, or began a call that has not ended, or was abandoned. */
struct usdt_site_stats {
	__u64 hits;
	__u64 ring_full;   /* there was no room in the ring */
	__u64 calls_full;  /* there was no room for another call or span under way */
	__u64 ended;	   /* calls that ended; at both sites of spans: spans that ended */
	__u64 rejected;	   /* the filter's answer was no (filter.h) */
	__u64 undecided;   /* the filter had no answer */
	__u64 table_full;  /* there was no room for another row */
	__u64 unpaired;	   /* what pairs the ends of spans could not be read */
	__u64 not_sampled; /* not chosen, or while usdt_paused was set; ends of spans whose beginning was not chosen */
	__u64 held_back;   /* beyond the number of events a second that was asked for */
	__u64 faster;	   /* calls and spans that took less than usdt_least_duration */
};

/* Adds up the hits of a row of a table (struct usdt_row of filter.h). The sum of the values is kept in three parts,
 * so that it cannot overflow before 2^42 hits, whatever the values are: that of their lowest 22 bits, that of the 22
 * bits above, and that of the upper 20 bits with the sign. minimum and maximum are compared as signed numbers; unsigned
 * values have their top bit flipped for that (usdt_table_constants::value_bias). */
#define USDT_TALLY_BITS 22
struct usdt_tally {
	__u64 count; /* hits */
	__u64 low;
	__u64 middle;
	__u64 high;
	__u64 minimum;
	__u64 maximum;
};

/* The exact sum of reals, which follows the tally where they are added up: signed words, of which word N counts units
 * of the smallest real above 0 times 2^(N * USDT_SUM_BITS). One real changes three of them, by less than
 * 2^USDT_SUM_BITS each. Behind them are two words: how many reals were infinite, and how many of those were negative.
 */
#define USDT_SUM_BITS 26
#define USDT_SUM_PIECES32 12 /* for floats */
#define USDT_SUM_PIECES64 81 /* for doubles */
#define USDT_SUM_INFINITIES 2

/* Counts for each argument of a site that may point to text how often nothing could be read: an argument that fails too
 * often is left alone. Only the first USDT_LIKELY_ARGS arguments are tried. */
#define USDT_LIKELY_ARGS 16
struct usdt_misreads {
	__u8 of_arg[USDT_LIKELY_ARGS];
};

/* The key of a call that has not ended, in the map that has the records of those. */
struct usdt_call_key {
	__u64 frame;	 /* usdt_frame(); of a session the time of its entry, or up to 7 ns later */
	__u64 goroutine; /* in Go the goroutine; then `frame` is the depth of its stack */
	__u32 tid;	 /* of calls of processes that two programs see, the process */
	__u32 site;
};

/* When a thread ended, and when it last executed another program, ns of CLOCK_MONOTONIC; 0: it did not. */
struct usdt_thread_end {
	__u64 ended; /* bit 0: it ended with its process, by exit_group() or a signal; not by itself */
	__u64 executed;
};

/* How long the number of a thread or process that pairs the ends of spans means one and not the next of that number. */
enum usdt_pair_life {
	USDT_PAIR_FOREVER = 0, /* there is no such number among the keys */
	USDT_PAIR_PROCESS = 1,
	USDT_PAIR_THREAD = 2,
	USDT_PAIR_IMAGE = 3, /* the thread, until its process executes another program */
};

/* The key of a span that has not ended: the beginning of a struct usdt_row (filter.h), with as many words of keys as
 * can pair the ends of spans. */
#define USDT_PAIR_WORDS 4
struct usdt_span_key {
	/* How many spans with these keys were open when this one began, and pair_life() of bpf/trace/threads.h. */
	__u64 part;
	__u64 key[USDT_PAIR_WORDS];
};

/* Follows the record of a span that has not ended. */
struct usdt_open_span {
	__u64 open; /* of the outermost span with these keys: how many are open. Set once its record is complete */
	__u64 lost; /* and how many began inside them for which there was no room: their ends come before the others' */
	struct usdt_owner owner; /* with usdt_span_constants::owner: whose the process is */
};

#ifdef __cplusplus
static_assert(sizeof(usdt_event) == 64, "ring record header");
static_assert(sizeof(usdt_event_arg) == 16, "ring record argument");
static_assert(sizeof(usdt_user_stack) == 528, "ring record user stack");
static_assert(sizeof(usdt_script_frame) == 40, "ring record script frame");
static_assert(sizeof(usdt_script_stack) == 176, "ring record script stack");
#else
_Static_assert(sizeof(struct usdt_event) == 64, "ring record header");
_Static_assert(sizeof(struct usdt_event_arg) == 16, "ring record argument");
_Static_assert(sizeof(struct usdt_user_stack) == 528, "ring record user stack");
_Static_assert(sizeof(struct usdt_script_frame) == 40, "ring record script frame");
_Static_assert(sizeof(struct usdt_script_stack) == 176, "ring record script stack");
#endif

#endif /* USDT_BPF_EVENT_H */
