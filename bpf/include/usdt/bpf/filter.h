/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A question about a hit, which user space has compiled into BPF instructions: what these are given, and what they
 * answer. The structures are shared with the compiler in user space (sdk/src/expr). */
#ifndef USDT_BPF_FILTER_H
#define USDT_BPF_FILTER_H

#include "spec.h"

/* Holds what the instructions are given, on the stack of the program. */
struct usdt_question {
	__u64 values[USDT_FILTER_VALUES];   /* the arguments that it reads, extended to 64 bits */
	__u32 unread;			    /* bit n: values[n] could not be read */
	__u32 site;			    /* the site's number in the trace; set where hits fill a table */
	__u64 duration;			    /* at the end of a call, ns */
	__u64 scratch[USDT_FILTER_SCRATCH]; /* for the instructions to work in */
};

/* Holds the keys of a hit's row, for hits that fill a table: the instructions write them, and leave the value that is
 * added up in values[0] of the question. This is the key of the map; only as many words of it are used as the keys
 * take, and words that the instructions do not write were 0 before. */
struct usdt_row {
	__u64 part; /* rows are kept in parts, so that processors seldom wait for each other; user space adds them up */
	__u64 key[USDT_ROW_WORDS];
};

/* A key of a row that is a stack: its number in the stack maps, and what tells stacks apart that have one number since
 * different processes have equal addresses. */
struct usdt_row_stack {
	__s32 number; /* or a negative errno; -EEXIST: another stack has its place in the map */
	__u32 pid;    /* thread group, as the tracer's pid namespace numbers it; 0: it is the kernel's stack */
	/* At the first instruction of a function, where unwinders by frame pointers miss its caller: the return
	 * address. Else 0. */
	__u64 caller;
};
#define USDT_ROW_STACK_DEPTH 127
#define USDT_MORE_STACKS (1 << 30) /* a bit of `number`: it is a number in the second map */

/* Lists what is known where a span begins, and how a program at its end reads it: from `event`, the record of the
 * beginning, and from `owner`, which is kept behind the record. A name of a thread has two words. */
#define USDT_FACTS_OF_RECORD(X)                                \
	X(PID, event->pid)                                     \
	X(TID, event->tid)                                     \
	X(CPU, event->cpu)                                     \
	X(COMM, ((const __u64 *)(const void *)event->comm)[0]) \
	X(COMM_REST, ((const __u64 *)(const void *)event->comm)[1])
#define USDT_FACTS_OF_OWNER(X)        \
	X(UID, (__u32)owner->uid_gid) \
	X(GID, owner->uid_gid >> 32)  \
	X(PPID, owner->parent)        \
	X(CGROUP, owner->cgroup)

/* What the thread works for, three words of struct usdt_thread_context: of any hit, and of calls and spans where they
 * began. */
#define USDT_FACTS_OF_CONTEXT(X) \
	X(TRACE, 0)              \
	X(TRACE_REST, 1)         \
	X(TRACE_SPAN, 2)

/* In usdt_program_constants::filter_args, numbers that stand for no argument: at the end of spans for what was known
 * where the span began, USDT_BEGIN_PID, USDT_BEGIN_TID and so on; and in every program those of the context. */
#define USDT_FACT_NUMBER(name, value) USDT_BEGIN_##name,
enum usdt_begin_fact {
	USDT_BEGIN_FACTS = 0xf0,		  /* the first of these numbers */
	USDT_BEGIN_BEFORE = USDT_BEGIN_FACTS - 1, /* so that it is that of the first fact */
	USDT_FACTS_OF_RECORD(USDT_FACT_NUMBER) USDT_FACTS_OF_OWNER(USDT_FACT_NUMBER)
	    USDT_FACTS_OF_CONTEXT(USDT_FACT_NUMBER)
};
#undef USDT_FACT_NUMBER

/* In usdt_program_constants::filter_texts: the number of the text's slot in the record, plus 1, and whether all of it
 * is wanted. Keys of rows have no more than its beginning. */
#define USDT_KEPT_TEXT 0x7f
#define USDT_KEPT_TEXT_WHOLE 0x80

/* The answer to a question. */
enum usdt_answer {
	USDT_NO = 0,
	USDT_YES = 1,
	USDT_UNDECIDED = 2, /* something that it needs could not be read, or it divides by 0 */
};

#ifdef __bpf__
#include "carriers.h"
#include "value.h"

/* Marks the place of the instructions: the loader puts them there in the place of the call. The two loads before it
 * tell the loader where on the stack the question and the row are. The instructions reach them through the frame
 * pointer: verifiers before Linux 6.8 (commit 41f6f64e6999) do not follow values through other pointers to the stack,
 * and take what one path stored for what all paths did. A macro, since an immediate operand of assembler cannot be a
 * parameter. */
#define USDT_COMPILED(question, row, placeholder)                              \
	({                                                                     \
		__u64 answer_;                                                 \
		asm volatile("r0 = *(u64 *)%1\n"                               \
			     "r0 = *(u64 *)%2\n"                               \
			     "call %3\n"                                       \
			     "%0 = r0"                                         \
			     : "=r"(answer_)                                   \
			     : "m"(*(question)), "m"(*(row)), "i"(placeholder) \
			     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");  \
		answer_;                                                       \
	})

/* The answer to a question, and the row that its instructions make. */
static __always_inline __u64 usdt_compiled_row(struct usdt_question *question, struct usdt_row *row)
{
	return USDT_COMPILED(question, row, USDT_PATCH_FILTER);
}

/* Computes what pairs the ends of spans, as the keys of a row. */
static __always_inline __u64 usdt_compiled_pair(struct usdt_question *question, struct usdt_row *row)
{
	return USDT_COMPILED(question, row, USDT_PATCH_PAIR);
}

/* The answer to a question that makes no row. */
static __always_inline __u64 usdt_compiled_answer(struct usdt_question *question)
{
	return usdt_compiled_row(question, (struct usdt_row *)question);
}

/* Argument `n` for a question. It is not read by its window, whose memory the question takes. 0, or as usdt_value(). */
static __always_inline int usdt_filter_value(const struct usdt_ctx *ctx, __u32 n, __u64 *value)
{
	struct usdt_arg_spec spec;
	int error, first = -1;
	__u32 failed;

	*value = 0;
	if (!usdt_find_arg(ctx, n, &spec))
		return -USDT_ENOENT;
	if (!(spec.kind & USDT_ARG_HAS_STEPS))
		spec.window = 0;
	/* As usdt_value(), with a single usdt_read() for values with and without steps. */
	if (usdt_program()->max_steps)
		first = usdt_split_steps(&spec);
	error = usdt_read(ctx, &spec, value);
	if (!usdt_program()->max_steps)
		return error;
	error = usdt_opaque(ctx, error);
	return error || first < 0 ? error : usdt_follow(ctx, first, value, &failed);
}

/* Puts a value into a question. It is written through a pointer that varies: usdt_compiled_row() says why the verifier
 * must know nothing of the value. */
static __always_inline void usdt_put_value(struct usdt_question *question, __u32 i, __u64 value)
{
	question->values[i] = usdt_unknown(value);
}

/* Begins a question about this hit, with the values that it needs: the arguments whose numbers are the first `count` of
 * `args`. It takes the memory of the windows, until usdt_end_question(). */
static __always_inline struct usdt_question *usdt_question_about(const struct usdt_ctx *ctx, const volatile __u8 *args,
								 __u32 count)
{
	struct usdt_question *question = (struct usdt_question *)ctx->window;
	__u32 unread = 0;

	USDT_STATIC_ASSERT(sizeof(struct usdt_question) <= sizeof(struct usdt_window));
	question->duration = 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < USDT_FILTER_VALUES; i++) {
		__u64 value = 0;

		if (i >= count)
			break;
		/* A text that a record keeps is read as the kernel's memory: no number of the process is its place. */
		if ((args == usdt_program()->filter_args && usdt_program()->filter_texts[i]) ||
		    usdt_filter_value(ctx, args[i], &value))
			unread |= 1u << i;
		usdt_put_value(question, i, value);
	}
	question->unread = usdt_unknown(unread);
	return question;
}

/* Begins the program's question. */
static __always_inline struct usdt_question *usdt_begin_question(const struct usdt_ctx *ctx)
{
	return usdt_question_about(ctx, usdt_program()->filter_args, usdt_program()->filter_values);
}

/* Ends a question: the windows are empty again. */
static __always_inline void usdt_end_question(const struct usdt_ctx *ctx)
{
	if (usdt_program()->windows)
		usdt_init_window(ctx, ctx->window);
}

/* The answer of PlanOptions::where for this hit (enum usdt_answer); USDT_YES if nothing is asked. */
static __always_inline __u64 usdt_filter(const struct usdt_ctx *ctx)
{
	__u64 answer;

	if (!usdt_program()->filtered)
		return USDT_YES;
	answer = usdt_compiled_answer(usdt_begin_question(ctx));
	usdt_end_question(ctx);
	return answer;
}
#endif

#endif /* USDT_BPF_FILTER_H */
