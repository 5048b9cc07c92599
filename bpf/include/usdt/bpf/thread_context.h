/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The trace and the span that a thread works for, as the thread publishes them: OpenTelemetry's thread context (OTEP
 * 4947). A thread-local variable of this name points to a record; while it is NULL the thread works for none. One
 * layout for the BPF program and user space. */
#ifndef USDT_BPF_THREAD_CONTEXT_H
#define USDT_BPF_THREAD_CONTEXT_H

#include "thread_variable.h"

#define USDT_CONTEXT_VARIABLE "otel_thread_ctx_v1"

/* How much is known of the context at a hit; else a negative errno: -ENOENT the process was not looked at yet, -EAGAIN
 * the thread is changing it, -EFAULT it cannot be read, -ENXIO the kernel does not have the thread's pointer yet,
 * -ENODATA it does not say where threads have their variables, -EOPNOTSUPP the process does not. */
enum usdt_context_state {
	USDT_CONTEXT_NONE = 0, /* the thread works for no trace, or the process has no such variable */
	USDT_CONTEXT_SET = 1,
};

/* The first members are the beginning of a thread's record, byte for byte. */
struct usdt_thread_context {
	__u8 trace_id[16];
	__u8 span_id[8];
	__u8 valid; /* only 1 is */
	__u8 flags; /* of the W3C's Trace Context */
	__u16 attributes_size;
	__s32 state; /* enum usdt_context_state */
};
#define USDT_CONTEXT_RECORD 28

/* The attributes of the thread's record, which follow the context where they are asked for: pieces of two bytes, the
 * number of a key and the length of a text, and the text. The process says elsewhere what the keys are called (its
 * process context, OTEP 4719). */
#define USDT_CONTEXT_ATTRIBUTE_BYTES 612
#define USDT_CONTEXT_PUBLISHED_AT 16 /* the byte of that context's header with the time */
struct usdt_thread_attributes {
	__u64 place;	    /* usdt_context_place::number; 0: the process was not looked at yet */
	__u64 published_at; /* when the process had published that, as it said at the hit; 0: not known */
	__s32 size;	    /* of what was read of them, or a negative errno */
	__u32 reserved;
	__u8 bytes[USDT_CONTEXT_ATTRIBUTE_BYTES + 4]; /* so that records are multiples of 8 bytes */
};

/* Where the threads of a process have the variable. A process is known by its number, by the program that it executes,
 * and by the time: one that began after it was looked at is another one. A process that has not been looked at has the
 * variables of its parent in the same places, if it was forked since that was. */
#define USDT_IMAGE_WORDS 4
struct usdt_context_place {
	__u32 pid;   /* the process, as the tracer's pid namespace numbers it */
	__s32 state; /* USDT_CONTEXT_SET: it has the variable; USDT_CONTEXT_NONE: it has none; or -EOPNOTSUPP */
	/* mm_struct::start_code, end_code, start_stack and arg_start, which proc_pid_stat(5) has, too. */
	__u64 image[USDT_IMAGE_WORDS];
	__u64 looked_at; /* ns of CLOCK_MONOTONIC */
	__u64 number;	 /* of what user space knows of it, from 1 */
	__u64 page;	 /* where the process has the header of its process context; 0: not known */
	/* Pages of code that it had mapped then (mm_struct::exec_vm), if it has no such variable: a library may have
	 * come since. */
	__u64 code_pages;
	struct usdt_thread_variable variable;
};

/* Where the variable of a thread was found. It is there for as long as the thread has the same thread pointer, its
 * process executes the same program with as much code, and the thread's vector has not heard of other modules. The last
 * five are of first threads whose pointer the kernel has late. */
struct usdt_found_variable {
	__u64 execution; /* task_struct::self_exec_id, which each execution of a program makes another one */
	__u64 code_pages;
	__u64 base;   /* the thread pointer */
	__u64 vector; /* of a library's variable; 0: it is near the thread pointer */
	__u64 generation;
	__u64 address;
	__u64 word_size;
	__u64 rseq; /* usdt_thread_variable::rseq */
	__u64 area; /* that the thread has registered by rseq(2) */
	/* At the thread's first hit since its program is executed: the number of that execution, the pointer that the
	 * kernel had, and how often the thread had been switched out. */
	__u64 first_execution;
	__u64 first_pointer;
	__u64 first_switches;
};

/* The key of a place in its map. */
static inline __u64 usdt_context_key(__u32 pid, const __u64 *image)
{
	const __u64 factor = 0x9e3779b97f4a7c15ull;
	__u64 key = pid * factor;

#pragma GCC unroll 4
	for (int i = 0; i < USDT_IMAGE_WORDS; i++) {
		key = (key ^ image[i]) * factor;
		key ^= key >> 32;
	}
	return key;
}

#ifdef __cplusplus
static_assert(sizeof(usdt_thread_context) == 32, "the thread's context in a record");
static_assert(sizeof(usdt_thread_attributes) == 640, "the attributes in a record");
#else
_Static_assert(sizeof(struct usdt_thread_context) == 32, "the thread's context in a record");
_Static_assert(sizeof(struct usdt_thread_attributes) == 640, "the attributes in a record");
#endif

#endif /* USDT_BPF_THREAD_CONTEXT_H */
