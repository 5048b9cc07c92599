/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What the stock program knows of an interpreter (CPython, PHP) that a process runs, to find at a hit which functions
 * of a script are running. User space fills it in, by process. Offsets are bytes in the interpreter's structures. */
#ifndef USDT_BPF_INTERPRETER_H
#define USDT_BPF_INTERPRETER_H

#include "event.h"

/* The members of a code object that never change while it lives, as words, and how many bytes they are. */
#define USDT_CODE_WORDS 11
#define USDT_CODE_BYTES (8 * USDT_CODE_WORDS)
/* Bytes of a frame that are read at once: no version has smaller ones, and what is needed is within them. */
#define USDT_FRAME_BYTES 80

/* How the versions of an interpreter differ in what leads to the functions that run. */
#define USDT_WALK_FROM_ACTIVATION 1 /* a thread leads to an activation, and that to the innermost function */
#define USDT_WALK_ACTIVATIONS 2	    /* each activation leads to the one around it */
/* The outermost frame of an activation is no function: it lies on the native stack, and is the activation. */
#define USDT_WALK_MARKS 4
/* Only the first thread of a process runs functions, and `holder` is the address of the pointer to the innermost. */
#define USDT_WALK_ONE_THREAD 8

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
	__u16 code_tag;	  /* bits of the pointer to a code object that are no part of its address */
	__u16 code_words; /* where USDT_CODE_WORDS begin; */
	__u16 code_mask;  /* which of them never change; */
	__u16 name_word;  /* and which of them is the pointer to the name, */
	__u16 name_hash;  /* which has its hash there: not -1 once it is known */
};

/* Adds a word to a cookie. */
static inline __attribute__((always_inline)) __u64 usdt_mix(__u64 cookie, __u64 word)
{
	cookie = (cookie ^ word) * 0x9e3779b97f4a7c15ull;
	return cookie ^ cookie >> 32;
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
		cookie = usdt_mix(cookie, mask >> i & 1 ? words[i] : 0);
	return cookie;
}

#ifdef __cplusplus
static_assert(sizeof(usdt_interpreter) == 80, "value of usdt_interpreters");
#else
_Static_assert(sizeof(struct usdt_interpreter) == 80, "value of usdt_interpreters");
#endif

#endif /* USDT_BPF_INTERPRETER_H */
