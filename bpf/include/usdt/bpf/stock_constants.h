/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The constants that say what the stock programs do (usdt_trace_*, and those that follow forks): a struct for each
 * subject, and one that has them all. The library writes them before it loads its programs, with which it is built; no
 * version is needed. Offsets are bytes in the kernel's structures, from its BTF; 0: not known. */
#ifndef USDT_BPF_STOCK_CONSTANTS_H
#define USDT_BPF_STOCK_CONSTANTS_H

#include "processes.h"
#include "spec.h"

/* The records of events (event.h). */
struct usdt_record_constants {
	__u32 size;	    /* bytes of a record */
	__u32 args;	    /* struct usdt_event_arg in a record */
	__u32 string_slots; /* of a record */
	__u32 string_size;  /* bytes of one slot */
	__u32 stack_depth;  /* addresses of the kernel's stack in a record */
	__u32 site_base;    /* records have site numbers so much above the plan's: sites added to a running trace */
	__u32 owners;	    /* each record ends with a struct usdt_owner */
	__u32 ender_at;	    /* the byte of a record at which struct usdt_ender begins; 0: it has none */
	__u32 context_at;   /* that of struct usdt_thread_context, likewise */
	__u32 attributes;   /* struct usdt_thread_attributes follows it */
};

/* The stack of the process in a record. */
struct usdt_user_stack_constants {
	__u32 at;    /* the byte of a record at which struct usdt_user_stack begins; 0: it has none */
	__u32 depth; /* addresses of the process's stack in a record */
	/* The stack is copied in pieces of so many bytes, a power of two: first what goes from the stack pointer up to
	 * a multiple of that, then so many whole ones. */
	__u32 copy_piece;
	__u32 copy_pieces;
};

/* The functions of scripts in a record. */
struct usdt_script_constants {
	__u32 at;	   /* the byte of a record at which struct usdt_script_stack begins; 0: it has none */
	__u32 depth;	   /* struct usdt_script_frame in a record, at most USDT_MOST_SCRIPT_FRAMES */
	__u32 thread_base; /* offset in task_struct of what pthread_self() returns: the thread pointer (x86-64) */
	__u32 reserved;
};

/* Offsets on the way to the calls of a thread that return probes wait for (the kernel's include/linux/uprobes.h). */
struct usdt_return_offsets {
	__u32 utask; /* in task_struct: its struct uprobe_task, */
	__u32 first; /* in which the innermost struct return_instance is found; in that, */
	__u32 address;
	__u32 stack;
	__u32 next;
};

/* The rows of usdt_stats. */
struct usdt_counter_constants {
	__u32 row_mask; /* their number, a power of two, less 1 */
	__u32 row_size; /* entries of one row */
};

/* Offsets in task_struct that tell whose descendant a process is, and what it has executed. */
struct usdt_family_offsets {
	__u32 pid;
	__u32 tgid;
	__u32 parent;
	__u32 signal;
	__u32 exit_signal;
	__u32 image;	/* what it has since it executed a program; and in that, */
	__u32 dumpable; /* in the two lowest bits, who may look into it */
};

/* Says whose descendants count. */
struct usdt_family_constants {
	/* Only processes count that descend from one of these, as the children of a traced command do; none: all count.
	 * They are numbered as in the initial pid namespace. */
	struct usdt_processes ancestors;
	__u32 ancestors_count;		 /* the ancestors themselves count, too */
	__u32 all_but_tasks;		 /* all processes count but the tasks that help the one of `ancestors` */
	struct usdt_family_offsets task; /* set where there are ancestors */
};

/* Offsets that tell whether a thread ends with its process (ends.bpf.c). */
struct usdt_thread_ends_constants {
	__u32 signal; /* in task_struct: what its process has, and in that, */
	__u32 flags;  /* struct signal_struct's */
};

/* Offsets in task_struct that tell which thread of a number it is, and of which process its process is a child. */
struct usdt_thread_offsets {
	__u32 start;  /* when the thread began, ns of CLOCK_MONOTONIC */
	__u32 exec;   /* how many programs it and those it was forked from have executed */
	__u32 leader; /* the first thread of its process */
	__u32 parent; /* the task that its process is a child of */
	__u32 tgid;   /* the number of its process */
};

/* The rows of a table. */
struct usdt_table_constants {
	__u64 value_bias; /* of a table's values: the top bit if they are unsigned, else 0 (struct usdt_tally) */
	__u32 part_mask;  /* number of parts of a table (usdt_row::part), a power of two, less 1 */
	__u32 sum_pieces; /* words of a table's exact sum of reals: USDT_SUM_PIECES32 or 64; 0: it has none */
	/* The byte of usdt_row::key at which a stack that is a key begins, and 1 more; 0: no key is one. */
	__u32 user_stack;
	__u32 kernel_stack;
};

/* Spans. The first so many sites of the plan begin them, the next so many end them. Behind them is one for each pair,
 * ordered by beginning, then by end: events of spans have these. */
struct usdt_span_constants {
	__u32 begins;
	__u32 ends;
	__u32 owner;	 /* a question about spans asks whose process they are of: usdt_open_span::owner */
	__u32 pair_life; /* enum usdt_pair_life: what pairs the ends of spans lives as long as that */
};

/* Says what is left out on purpose. */
struct usdt_guard_constants {
	/* At most so many events a second, as a token bucket: an event costs rate_price, in units of
	 * 2^-USDT_RATE_SHIFT ns, and what a second earns is the most that can be saved. rate_start is when earning
	 * began, ns of CLOCK_MONOTONIC: a second before the trace. rate_price 0: no limit. */
	__u64 rate_price;
	__u64 rate_start;
	__u32 sample;	 /* one in so many hits is looked at, chosen at random; 0 and 1: all are */
	__u32 pausable;	 /* usdt_paused (trace/guards.h) is looked at */
	__u32 slow_only; /* usdt_least_duration (trace/guards.h) is looked at */
	__u32 reserved;
};
#define USDT_RATE_SHIFT 6 /* times are below 2^58 ns, nine years, in 64 bits */

/* Says whose tasks alone count: those of one user, for whom somebody with more rights has loaded the programs
 * (usdt-broker). The rest are offsets. */
struct usdt_owner_constants {
	__u32 uid; /* as the initial user namespace numbers users and groups */
	__u32 gid;
	__u32 checked;	 /* 0: everybody's tasks count, and nothing here is looked at */
	__u32 cred;	 /* in task_struct: who the task is to others (real_cred); and in that, */
	__u32 ids;	 /* struct cred::uid, with which uid, gid, suid, sgid, euid and egid begin, in this order, */
	__u32 permitted; /* and the capabilities that the task may have */
	__u32 image;	 /* usdt_family_offsets */
	__u32 dumpable;
};

/* Offsets that tell which program the current process executes. */
struct usdt_image_offsets {
	__u32 memory;	  /* in task_struct: its mm; and in that, */
	__u32 code_start; /* start_code, */
	__u32 code_end;
	__u32 stack;	  /* start_stack, */
	__u32 arguments;  /* arg_start, */
	__u32 code_pages; /* and exec_vm */
};

/* Offsets in task_struct that tell the pointer of a program's first thread, where the kernel has that late. */
struct usdt_late_pointer_offsets {
	__u32 flags;	   /* of the task (PF_FORKNOEXEC); 0: the kernel has pointers at once */
	__u32 rseq;	   /* the area that the thread has registered; 0: not known */
	__u32 switches;	   /* how often it was switched out because it waited, */
	__u32 preemptions; /* and because another was to run */
};

/* All of them. */
struct usdt_stock_constants {
	struct usdt_table_constants table;
	struct usdt_guard_constants guards;
	struct usdt_record_constants record;
	struct usdt_user_stack_constants user_stack;
	struct usdt_return_offsets returns;
	struct usdt_counter_constants counters;
	struct usdt_family_constants family;
	struct usdt_thread_offsets threads;
	struct usdt_span_constants spans;
	__u32 cgroups;	 /* so many entries of usdt_cgroups: only processes in one of them count; 0: all count */
	__u32 may_sleep; /* programs on sites of files are loaded as sleepable ones */
	struct usdt_owner_constants owner;
	struct usdt_image_offsets image; /* set where records have a context */
	struct usdt_script_constants scripts;
	struct usdt_late_pointer_offsets late_pointer; /* set where records have a context */
};

/* A cgroup (v2): processes in it and in those below it count. */
struct usdt_cgroup {
	__u64 id;    /* the inode number of its directory; 0: it is not there now */
	__u32 level; /* how far it is below the root, whose level is 0 */
	__u32 reserved;
};
#define USDT_MAX_CGROUPS 8

USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_stock_constants, record) == 56);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_stock_constants, family) == 140);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_stock_constants, spans) == 456);
USDT_STATIC_ASSERT(__builtin_offsetof(struct usdt_stock_constants, owner) == 480);
USDT_STATIC_ASSERT(sizeof(struct usdt_stock_constants) == 568);

#endif /* USDT_BPF_STOCK_CONSTANTS_H */
