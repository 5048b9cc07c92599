/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What the stock program knows of an interpreter (CPython, PHP, Ruby) that a process runs, to find at a hit which
 * functions of a script are running. User space fills it in, by process. Offsets are bytes in the interpreter's
 * structures. */
#ifndef USDT_BPF_INTERPRETER_H
#define USDT_BPF_INTERPRETER_H

#include "event.h"
#include "thread_variable.h"

/* The members of a code object that never change while it lives are among so many words. */
#define USDT_CODE_WORDS 13
/* Bytes of a frame that are read at once: no version has smaller ones, and what is needed is within them. */
#define USDT_FRAME_BYTES 80

/* How the versions of an interpreter differ in what leads to the functions that run. */
#define USDT_WALK_FROM_ACTIVATION 1 /* a thread leads to an activation, and that to the innermost function */
#define USDT_WALK_ACTIVATIONS 2	    /* each activation leads to the one around it */
/* The outermost frame of an activation is no function: it lies on the native stack, and is the activation. */
#define USDT_WALK_MARKS 4
/* Only the first thread of a process runs functions, and `holder` is the address of the pointer to the innermost. */
#define USDT_WALK_ONE_THREAD 8
/* A thread-local variable leads to the thread's context, and that to a stack of frames that lie side by side. Functions
 * written in C have frames among them, which point to no code object. */
#define USDT_WALK_STACK 16

/* Words of a name that tell it from others where it has no hash. */
#define USDT_NAME_WORDS 3

/* What tells a code object from others. */
struct usdt_code_shape {
	__u16 at;    /* where its words begin, at most USDT_CODE_WORDS, */
	__u16 bytes; /* which are so many bytes; */
	__u16 mask;  /* which of the words never change while it lives; */
	/* and which of them is the pointer to the name, that has its hash there, of 8 bytes (not -1 once it is known),
	 * or USDT_NAME_WORDS which never change. 0 in place of the pointer: it has no name. */
	__u16 name_word;
	__u16 name_at;
	__u16 name_bytes;
};

/* Words that a frame of such a stack has in its environment: the method first, the frame's flags last. */
#define USDT_ENVIRONMENT_WORDS 3

/* Offsets of USDT_WALK_STACK, beside those that all interpreters have. */
struct usdt_stacked_functions {
	struct usdt_thread_variable variable; /* the pointer to the thread's context, of a process, */
	__u16 variable_words; /* which is one of so many words there: that which leads to the thread, and it back */
	/* In the first USDT_FRAME_BYTES of the context: */
	__u16 context_stack;  /* the lowest address of the stack, which grows downwards; */
	__u16 context_size;   /* how many words it has; */
	__u16 context_frame;  /* the pointer to the innermost frame; */
	__u16 context_thread; /* the pointer to the thread, which has its `thread_id`, and here */
	__u16 thread_context; /* the pointer back to the context */
	__u16 thread_native;  /* and here, unless this is 0, to the native thread, which has `thread_id` in its place */
	__u16 frame_size;
	__u16 frame_environment; /* the pointer to the last of USDT_ENVIRONMENT_WORDS, of which `frame_entry` is one */
	__u16 object_code;	 /* in what `frame_code` points to: the pointer to the code object */
	struct usdt_code_shape method; /* of a function written in C */
};

/* Addresses and offsets in one process. */
struct usdt_interpreter {
	__u64 check_at; /* the word here has the value `check` as long as the process runs this interpreter */
	__u64 check;
	__u64 interpreters; /* address of the pointer to the first interpreter of the process */
	__u64 holder;  /* address of the pointer to the thread that has the lock; 0: there is none in this version */
	__u16 runtime; /* enum usdt_runtime */
	__u16 version; /* the major version in the upper byte, the minor one in the lower */
	__u16 interpreter_next;
	__u16 interpreter_threads; /* the pointer to its first thread */
	__u16 thread_next;
	__u16 thread_id;    /* pthread_self() of the thread */
	__u16 walk;	    /* USDT_WALK_* */
	__u16 thread_leads; /* the pointer to the innermost function, or to the activation that runs it: */
	/* What a call of the interpreter's loop keeps on the native stack. In that are the pointers to the function
	 * that runs, and to the activation around it. */
	__u16 activation_frame;
	__u16 activation_previous;
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_instruction;
	__u16 frame_owner;
	__u16 frame_entry; /* a byte; the outermost frame of an activation has this value in the bits of the mask */
	__u8 entry_mask;
	__u8 entry_value;
	__u16 code_tag; /* bits of the pointer to a code object that are no part of its address */
	struct usdt_code_shape code;
	struct usdt_stacked_functions stacked;
};

/* Adds a word to a cookie. */
static inline __attribute__((always_inline)) __u64 usdt_mix(__u64 cookie, __u64 word)
{
	cookie = (cookie ^ word) * 0x9e3779b97f4a7c15ull;
	return cookie ^ cookie >> 32;
}

/* The hash of a name, or what stands for it, from the words that were read. */
static inline __attribute__((always_inline)) __u64 usdt_name_hash(const __u64 *words, __u32 bytes)
{
	return bytes > 8 ? usdt_mix(usdt_mix(usdt_mix(0, words[0]), words[1]), words[2]) : words[0];
}

/* A number that tells a code object from another one that had the same address before. */
static inline __attribute__((always_inline)) __u64 usdt_code_cookie(const __u64 *words, __u32 mask, __u64 name_hash)
{
	__u64 cookie = usdt_mix(0, name_hash);
	int i;

#ifdef __clang__
#pragma unroll
#endif
	for (i = 0; i < USDT_CODE_WORDS; i++)
		cookie = usdt_mix(cookie, words[i] & -(__u64)(mask >> i & 1));
	return cookie;
}

#ifdef __cplusplus
static_assert(sizeof(usdt_interpreter) == 144, "value of usdt_interpreters");
#else
_Static_assert(sizeof(struct usdt_interpreter) == 144, "value of usdt_interpreters");
#endif

#endif /* USDT_BPF_INTERPRETER_H */
