/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Functions of scripts that were running at a hit: pointers to them, which user space gives names to later. The thread
 * is stopped at the hit, so that what it runs does not change while it is read. */
#ifndef USDT_TRACE_SCRIPTS_H
#define USDT_TRACE_SCRIPTS_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include <usdt/bpf/interpreter.h>
#include "../stock.h"

/* Threads of an interpreter that are looked at, besides the one that has its lock. */
#define MOST_SCRIPT_THREADS 64

/* The interpreters that processes run, by process. The loader gives it room where scripts are followed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct usdt_interpreter);
} usdt_interpreters SEC(".maps");

/* Copies a word of the process; true: it could not be read. */
static __always_inline bool misses_word(__u64 *to, __u64 address)
{
	return bpf_probe_read_user(to, sizeof(*to), (const void *)address);
}

/* Finds the interpreter's state of the thread that runs, and puts its address into stack->at. The thread that has the
 * interpreter's lock is found at once; one that waits, or does something without the lock, is in the list, too. Each
 * has pthread_self(), which no pid namespace changes. */
static __always_inline __u32 find_script_thread(const struct usdt_interpreter *known, struct usdt_script_stack *stack)
{
	__u64 self = 0;

	if (bpf_probe_read_kernel(&self, sizeof(self),
				  (void *)bpf_get_current_task() + usdt_stock()->scripts.thread_base) ||
	    !self)
		return USDT_SCRIPT_OTHER_THREAD;
	if (known->holder && !misses_word(&stack->at, known->holder) && stack->at &&
	    !misses_word(&stack->word, stack->at + known->thread_id) && stack->word == self)
		return USDT_SCRIPT_COMPLETE;
	stack->at = 0;
	if (misses_word(&stack->next, known->interpreters))
		return USDT_SCRIPT_UNREADABLE;
	for (__u32 i = 0; i < MOST_SCRIPT_THREADS; i++) {
		if (!stack->at) { /* behind the last thread of an interpreter: those of the next one */
			if (!stack->next)
				return USDT_SCRIPT_OTHER_THREAD;
			if (misses_word(&stack->at, stack->next + known->interpreter_threads) ||
			    misses_word(&stack->next, stack->next + known->interpreter_next))
				return USDT_SCRIPT_UNREADABLE;
			continue;
		}
		if (misses_word(&stack->word, stack->at + known->thread_id))
			return USDT_SCRIPT_UNREADABLE;
		if (stack->word == self)
			return USDT_SCRIPT_COMPLETE;
		if (misses_word(&stack->at, stack->at + known->thread_next))
			return USDT_SCRIPT_UNREADABLE;
	}
	return USDT_SCRIPT_MOST_THREADS;
}

/* Takes what tells the code object from others that may have its place later. Not all have a name. */
static __always_inline void take_code(const struct usdt_interpreter *known, struct usdt_script_stack *stack,
				      struct usdt_script_frame *to)
{
	to->cookie = 0;
	if (bpf_probe_read_user(stack->code, USDT_CODE_BYTES, (const void *)(to->code + known->code_words)))
		return;
	stack->word = stack->code[known->name_word & (USDT_CODE_ROOM - 1)];
	if (stack->word && misses_word(&stack->word, stack->word + known->name_hash))
		return;
	to->cookie = usdt_code_cookie(stack->code, known->code_mask, stack->word);
}

/* Goes on to the activation around the one whose outermost function was taken: it runs the function that called that
 * one. */
static __always_inline __u32 leave_activation(const struct usdt_interpreter *known, struct usdt_script_stack *stack)
{
	if (!(known->walk & USDT_WALK_ACTIVATIONS))
		return USDT_SCRIPT_COMPLETE;
	if (misses_word(&stack->activation, stack->activation + known->activation_previous) ||
	    misses_word(&stack->word, stack->activation + known->activation_frame))
		return USDT_SCRIPT_UNREADABLE;
	return stack->word == stack->at ? USDT_SCRIPT_COMPLETE : USDT_SCRIPT_INCONSISTENT;
}

/* A word of the frame that was copied into stack->code, and a byte. */
static __always_inline __u64 word_of_frame(const struct usdt_script_stack *stack, __u32 offset)
{
	return stack->code[offset >> 3 & (USDT_CODE_ROOM - 1)];
}

static __always_inline __u32 byte_of_frame(const struct usdt_script_stack *stack, __u32 offset)
{
	return word_of_frame(stack, offset) >> 8 * (offset & 7) & 0xff;
}

/* Fills in one frame and puts the address of the one that called it into stack->at. */
static __always_inline __u32 take_script_frame(const struct usdt_interpreter *known, struct usdt_script_stack *stack,
					       struct usdt_script_frame *to)
{
	if (bpf_probe_read_user(stack->code, USDT_FRAME_BYTES, (const void *)stack->at))
		return USDT_SCRIPT_UNREADABLE;
	to->code = word_of_frame(stack, known->frame_code) & ~(__u64)known->code_tag;
	to->instruction = word_of_frame(stack, known->frame_instruction);
	to->activation = known->walk & USDT_WALK_ACTIVATIONS ? stack->activation : 0;
	to->flags = byte_of_frame(stack, known->frame_owner) << USDT_SCRIPT_OWNER;
	stack->next = word_of_frame(stack, known->frame_previous);
	if ((byte_of_frame(stack, known->frame_entry) & known->entry_mask) == known->entry_value) {
		to->flags |= USDT_SCRIPT_ENTRY;
		if (known->walk & USDT_WALK_MARKS) {
			to->flags |= USDT_SCRIPT_MARK;
			to->activation = stack->at;
		}
	}
	take_code(known, stack, to);
	stack->at = stack->next;
	return to->flags & USDT_SCRIPT_ENTRY ? leave_activation(known, stack) : USDT_SCRIPT_COMPLETE;
}

/* Puts the address of the innermost frame of the thread into stack->at. */
static __always_inline bool misses_first_frame(const struct usdt_interpreter *known, struct usdt_script_stack *stack)
{
	if (misses_word(&stack->activation, stack->at + known->thread_leads))
		return true;
	stack->at = stack->activation;
	return (known->walk & USDT_WALK_FROM_ACTIVATION) &&
	       misses_word(&stack->at, stack->activation + known->activation_frame);
}

static __always_inline __u32 follow_script(const struct usdt_interpreter *known, struct usdt_script_stack *stack)
{
	struct usdt_script_frame *frames = (void *)stack + sizeof(*stack);
	__u32 state;

	if (misses_word(&stack->word, known->check_at) || stack->word != known->check)
		return USDT_SCRIPT_OTHER_IMAGE;
	if (known->walk & USDT_WALK_ONE_THREAD) {
		if ((__u32)bpf_get_current_pid_tgid() != bpf_get_current_pid_tgid() >> 32)
			return USDT_SCRIPT_OTHER_THREAD;
		if (misses_word(&stack->at, known->holder))
			return USDT_SCRIPT_UNREADABLE;
	} else {
		state = find_script_thread(known, stack);
		if (state != USDT_SCRIPT_COMPLETE)
			return state;
		if (misses_first_frame(known, stack))
			return USDT_SCRIPT_UNREADABLE;
	}
	for (__u32 i = 0; i <= USDT_MOST_SCRIPT_FRAMES; i++) {
		if (!stack->at)
			return USDT_SCRIPT_COMPLETE;
		if (i >= usdt_stock()->scripts.depth || i >= USDT_MOST_SCRIPT_FRAMES)
			return USDT_SCRIPT_CUT;
		state = take_script_frame(known, stack, &frames[i]);
		if (state == USDT_SCRIPT_UNREADABLE)
			return state;
		stack->count = i + 1;
		if (state != USDT_SCRIPT_COMPLETE)
			return state;
	}
	return USDT_SCRIPT_CUT;
}

static __always_inline void take_script_stack(struct usdt_script_stack *stack)
{
	__u32 process = usdt_pid_tgid() >> 32;
	const struct usdt_interpreter *known = bpf_map_lookup_elem(&usdt_interpreters, &process);

	stack->count = 0;
	stack->state = USDT_SCRIPT_NONE;
	stack->runtime = known ? known->runtime : USDT_RUNTIME_NONE;
	stack->version = known ? known->version : 0;
	if (known)
		stack->state = follow_script(known, stack);
}

#endif /* USDT_TRACE_SCRIPTS_H */
