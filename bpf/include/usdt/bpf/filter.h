/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A question about a hit, which user space compiled: what its instructions are given and what they answer. For BPF
 * programs; the layout is shared with what makes the instructions (sdk/src/expr). */
#ifndef USDT_BPF_FILTER_H
#define USDT_BPF_FILTER_H

#include "spec.h"

/* What is given to the instructions, on the stack of the program. */
struct usdt_question {
	__u64 values[USDT_FILTER_VALUES]; /* of the arguments it reads, extended to 64 bits */
	__u32 unread;			  /* bit n: values[n] could not be read */
	__u32 site;			  /* its number, where there is a table */
	__u64 duration;			  /* of a call that ends, ns */
	__u64 scratch[USDT_FILTER_SCRATCH];
};

/* What comes with the answer where hits become rows of a table: the key of a map, of which programs give only as much
 * as there are keys, and a value. What is not written is 0 beforehand. */
struct usdt_row {
	__u64 part; /* rows are kept in parts, so that processors seldom wait for each other; user space adds them up */
	__u64 key[USDT_ROW_WORDS];
};

/* A key of a row that is a stack: its number in the maps of those, and what tells it from the same number of another
 * process. */
struct usdt_row_stack {
	__s32 number; /* or a negative errno: -EEXIST, its place has another one */
	__u32 pid;    /* thread group, in the tracer's pid namespace; 0: the kernel's stack */
	__u64 caller; /* at the first instruction of a function whom it returns to, where unwinders may not see it; or 0
		       */
};
#define USDT_ROW_STACK_DEPTH 127
#define USDT_MORE_STACKS (1 << 30) /* in a number: of the second map */

/* Numbers in usdt_program_constants::filter_args of an end of spans that are those of no argument: what was known where
 * the span began. */
enum usdt_begin_fact {
	USDT_BEGIN_FACTS = 0xf0, /* from here on */
	USDT_BEGIN_PID = USDT_BEGIN_FACTS,
	USDT_BEGIN_TID,
	USDT_BEGIN_CPU,
	USDT_BEGIN_COMM,
	USDT_BEGIN_COMM_REST, /* its second half */
	USDT_BEGIN_UID,	      /* from here on not in a record, but beside it (struct usdt_open_span) */
	USDT_BEGIN_GID,
	USDT_BEGIN_CGROUP,
};

/* The answers. */
enum usdt_answer {
	USDT_NO = 0,
	USDT_YES = 1,
	USDT_UNDECIDED = 2, /* something it needs could not be read, or is divided by 0 */
};

#ifdef __bpf__
#include "carriers.h"
#include "value.h"

/* In the program these are loads from where the question and the row are, and a call, in whose place the loader puts
 * the instructions: the loads tell it the places on the stack. They reach them through the frame pointer, since
 * verifiers before Linux 6.8 (commit 41f6f64e6999) follow no value through other pointers to the stack, and then take
 * a value of one path for that of all. */
static __always_inline __u64 usdt_compiled_row(struct usdt_question *question, struct usdt_row *row)
{
	__u64 answer;

	asm volatile("r0 = *(u64 *)%1\n"
		     "r0 = *(u64 *)%2\n"
		     "call %3\n"
		     "%0 = r0"
		     : "=r"(answer)
		     : "m"(*question), "m"(*row), "i"(USDT_PATCH_FILTER)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
	return answer;
}

/* The same of what pairs the ends of spans, whose keys become those of a row. */
static __always_inline __u64 usdt_compiled_pair(struct usdt_question *question, struct usdt_row *row)
{
	__u64 answer;

	asm volatile("r0 = *(u64 *)%1\n"
		     "r0 = *(u64 *)%2\n"
		     "call %3\n"
		     "%0 = r0"
		     : "=r"(answer)
		     : "m"(*question), "m"(*row), "i"(USDT_PATCH_PAIR)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
	return answer;
}

/* The same of an answer alone. */
static __always_inline __u64 usdt_compiled_answer(struct usdt_question *question)
{
	return usdt_compiled_row(question, (struct usdt_row *)question);
}

/* Alone, since a window is where the question is. */
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
	/* As usdt_value() does it, with one usdt_read() for values with and without steps. */
	if (usdt_program()->max_steps)
		first = usdt_split_steps(&spec);
	error = usdt_read(ctx, &spec, value);
	if (!usdt_program()->max_steps)
		return error;
	error = usdt_opaque(ctx, error);
	return error || first < 0 ? error : usdt_follow(ctx, first, value, &failed);
}

/* Puts a value into a question. It is written through a pointer that varies: see usdt_compiled_row() for why the
 * verifier must know nothing of it. */
static __always_inline void usdt_put_value(struct usdt_question *question, __u32 i, __u64 value)
{
	question->values[i] = usdt_unknown(value);
}

/* A question about this hit, with the values it needs: the first `count` of `args`. It takes the place of the windows,
 * which usdt_end_question() makes anew. */
static __always_inline struct usdt_question *usdt_question_about(const struct usdt_ctx *ctx, const volatile __u8 *args,
								 __u32 count)
{
	struct usdt_question *question = (struct usdt_question *)ctx->window;
	__u32 unread = 0;

	USDT_STATIC_ASSERT(sizeof(struct usdt_question) <= sizeof(struct usdt_window));
	question->duration = 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < USDT_FILTER_VALUES; i++) {
		__u64 value;

		if (i >= count)
			break;
		if (usdt_filter_value(ctx, args[i], &value))
			unread |= 1u << i;
		usdt_put_value(question, i, value);
	}
	question->unread = usdt_unknown(unread);
	return question;
}

static __always_inline struct usdt_question *usdt_begin_question(const struct usdt_ctx *ctx)
{
	return usdt_question_about(ctx, usdt_program()->filter_args, usdt_program()->filter_values);
}

static __always_inline void usdt_end_question(const struct usdt_ctx *ctx)
{
	if (usdt_program()->windows)
		usdt_init_window(ctx, ctx->window);
}

/* PlanOptions::where for this hit (enum usdt_answer); without one it is USDT_YES. */
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
