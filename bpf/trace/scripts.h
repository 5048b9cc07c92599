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

/* What pthread_self() returns in the thread that runs, which no pid namespace changes; 0: not known. */
static __always_inline __u64 script_thread(struct usdt_script_stack *stack)
{
	return bpf_probe_read_kernel(&stack->word, sizeof(stack->word),
				     (void *)bpf_get_current_task() + usdt_stock()->scripts.thread_base)
		   ? 0
		   : stack->word;
}

/* Finds the interpreter's state of the thread that runs, and puts its address into stack->at. The thread that has the
 * interpreter's lock is found at once; one that waits, or does something without the lock, is in the list, too. */
static __always_inline __u32 find_script_thread(const struct usdt_interpreter *known, struct usdt_script_stack *stack)
{
	const __u64 self = script_thread(stack);

	if (!self)
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

/* Takes what tells the code object from others that may have its place later. Not all have a name. A function written
 * in C has a method in place of one. */
static __always_inline void take_code(const struct usdt_interpreter *known, struct usdt_script_stack *stack,
				      struct usdt_script_frame *to)
{
	const struct usdt_code_shape *shape = to->flags & USDT_SCRIPT_IN_C ? &known->stacked.method : &known->code;
	__u64 *name = stack->code + USDT_CODE_WORDS;

	to->cookie = 0;
	if (bpf_probe_read_user(stack->code, shape->bytes & 127, (const void *)(to->code + shape->at)))
		return;
	stack->word = stack->code[shape->name_word & (USDT_CODE_ROOM - 1)];
	if (stack->word) {
		if (bpf_probe_read_user(name, shape->name_bytes & 31, (const void *)(stack->word + shape->name_at)))
			return;
		stack->word = usdt_name_hash(name, shape->name_bytes);
	}
	to->cookie = usdt_code_cookie(stack->code, shape->mask, stack->word);
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

/* A word of what was copied into stack->code, as a frame is, and a byte. */
static __always_inline __u64 word_of_frame(const struct usdt_script_stack *stack, __u32 offset)
{
	return stack->code[offset >> 3 & (USDT_CODE_ROOM - 1)];
}

static __always_inline __u32 byte_of_frame(const struct usdt_script_stack *stack, __u32 offset)
{
	return word_of_frame(stack, offset) >> 8 * (offset & 7) & 0xff;
}

static __always_inline bool is_entry(const struct usdt_interpreter *known, const struct usdt_script_stack *stack)
{
	return (byte_of_frame(stack, known->frame_entry) & known->entry_mask) == known->entry_value;
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
	if (is_entry(known, stack)) {
		to->flags |= USDT_SCRIPT_ENTRY;
		if (known->walk & USDT_WALK_MARKS) {
			to->flags |= USDT_SCRIPT_MARK;
			to->activation = stack->at;
		}
	}
	stack->at = stack->next;
	return to->flags & USDT_SCRIPT_ENTRY ? leave_activation(known, stack) : USDT_SCRIPT_COMPLETE;
}

/* Whether stack->next is the context of the thread that runs: what the thread had may have been another's since it
 * ended, so that it has to lead to the thread, and back. The context is in stack->code then. */
static __always_inline bool is_own_context(const struct usdt_interpreter *known, struct usdt_script_stack *stack,
					   __u64 self)
{
	if (!stack->next || bpf_probe_read_user(stack->code, USDT_FRAME_BYTES, (const void *)stack->next))
		return false;
	stack->at = word_of_frame(stack, known->stacked.context_thread);
	if (misses_word(&stack->word, stack->at + known->stacked.thread_context) || stack->word != stack->next)
		return false;
	if (known->stacked.thread_native && misses_word(&stack->at, stack->at + known->stacked.thread_native))
		return false;
	return !misses_word(&stack->word, stack->at + known->thread_id) && stack->word == self;
}

/* Words of thread-local variables among which the pointer to a context is looked for. */
#define MOST_VARIABLE_WORDS 4

/* Finds the stack of functions of the thread that runs. Puts the address of the innermost frame into stack->at, 0:
 * there is none; and that of the outermost one, which is no function, into stack->activation. */
static __always_inline __u32 find_function_stack(const struct usdt_interpreter *known, struct usdt_script_stack *stack)
{
	const __u64 self = script_thread(stack);
	const __u64 most = 1 << 27;
	bool is_own = false;
	__u64 size;
	int error;
	__u32 i;

	if (!self)
		return USDT_SCRIPT_OTHER_THREAD;
	error = usdt_find_thread_variable(&known->stacked.variable, self, &stack->activation);
	if (error == -USDT_ENOENT)
		return USDT_SCRIPT_OTHER_THREAD;
	if (error)
		return USDT_SCRIPT_UNREADABLE;
#pragma clang loop unroll(disable)
	for (i = 0; i < MOST_VARIABLE_WORDS && i < known->stacked.variable_words; i++) {
		if (misses_word(&stack->next, stack->activation + 8 * i))
			return USDT_SCRIPT_UNREADABLE;
		is_own = is_own_context(known, stack, self);
		if (is_own)
			break;
	}
	if (!is_own)
		return USDT_SCRIPT_OTHER_THREAD;
	stack->at = word_of_frame(stack, known->stacked.context_frame);
	if (!stack->at)
		return USDT_SCRIPT_COMPLETE;
	size = word_of_frame(stack, known->stacked.context_size);
	stack->activation = word_of_frame(stack, known->stacked.context_stack) + 8 * size - known->stacked.frame_size;
	if (size > most || stack->at < word_of_frame(stack, known->stacked.context_stack) ||
	    stack->at > stack->activation || (stack->activation - stack->at) % known->stacked.frame_size)
		return USDT_SCRIPT_INCONSISTENT;
	if (stack->at == stack->activation)
		stack->at = 0;
	return USDT_SCRIPT_COMPLETE;
}

/* Fills in one frame of such a stack and goes on to the next one. A frame without an instruction is no function: what
 * it runs was written in C without a method, or it tells where a file was read. */
static __always_inline __u32 take_stacked_frame(const struct usdt_interpreter *known, struct usdt_script_stack *stack,
						struct usdt_script_frame *to)
{
	if (bpf_probe_read_user(stack->code, USDT_FRAME_BYTES, (const void *)stack->at))
		return USDT_SCRIPT_UNREADABLE;
	to->code = word_of_frame(stack, known->frame_code);
	to->instruction = word_of_frame(stack, known->frame_instruction);
	to->activation = stack->at;
	to->flags = to->code ? to->instruction ? 0 : USDT_SCRIPT_MARK : USDT_SCRIPT_IN_C;
	stack->word = word_of_frame(stack, known->stacked.frame_environment) - 8 * (USDT_ENVIRONMENT_WORDS - 1);
	if (bpf_probe_read_user(stack->code, 8 * USDT_ENVIRONMENT_WORDS, (const void *)stack->word))
		return USDT_SCRIPT_UNREADABLE;
	if (!(to->flags & USDT_SCRIPT_MARK) && is_entry(known, stack))
		to->flags |= USDT_SCRIPT_ENTRY;
	if (to->flags & USDT_SCRIPT_IN_C)
		stack->word = stack->code[0];
	else if (misses_word(&stack->word, to->code + known->stacked.object_code))
		return USDT_SCRIPT_UNREADABLE;
	to->code = stack->word;
	stack->at += known->stacked.frame_size;
	if (stack->at >= stack->activation)
		stack->at = 0;
	return USDT_SCRIPT_COMPLETE;
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

/* Finds the innermost frame of the thread that runs, by the way that its interpreter has. */
static __always_inline __u32 find_first_frame(const struct usdt_interpreter *known, struct usdt_script_stack *stack)
{
	__u32 state;

	if (known->walk & USDT_WALK_STACK)
		return find_function_stack(known, stack);
	if (known->walk & USDT_WALK_ONE_THREAD) {
		if ((__u32)bpf_get_current_pid_tgid() != bpf_get_current_pid_tgid() >> 32)
			return USDT_SCRIPT_OTHER_THREAD;
		return misses_word(&stack->at, known->holder) ? USDT_SCRIPT_UNREADABLE : USDT_SCRIPT_COMPLETE;
	}
	state = find_script_thread(known, stack);
	if (state == USDT_SCRIPT_COMPLETE && misses_first_frame(known, stack))
		return USDT_SCRIPT_UNREADABLE;
	return state;
}

/* Whether the process runs what is known. A process that was forked has no page of a file before it uses it. */
static __always_inline bool is_as_known(const struct usdt_interpreter *known, struct usdt_script_stack *stack,
					bool is_forked)
{
	return misses_word(&stack->word, known->check_at) ? is_forked : stack->word == known->check;
}

/* Puts the functions of the thread into the record, and how far they could be followed into stack->state. */
static __always_inline void follow_script(const struct usdt_interpreter *known, struct usdt_script_stack *stack)
{
	struct usdt_script_frame *to = (void *)stack + sizeof(*stack);

	stack->state = find_first_frame(known, stack);
	for (__u32 i = 0; i <= USDT_MOST_SCRIPT_FRAMES; i++) {
		if (stack->state != USDT_SCRIPT_COMPLETE || !stack->at)
			return;
		if (i >= usdt_stock()->scripts.depth || i >= USDT_MOST_SCRIPT_FRAMES)
			break;
		stack->state = known->walk & USDT_WALK_STACK ? take_stacked_frame(known, stack, &to[i])
							     : take_script_frame(known, stack, &to[i]);
		if (stack->state == USDT_SCRIPT_UNREADABLE)
			return;
		take_code(known, stack, &to[i]);
		stack->count = i + 1;
	}
	stack->state = USDT_SCRIPT_CUT;
}

/* A word of four bytes of a task; 0: it cannot be read. */
static __always_inline __u32 half_of_task(struct usdt_script_stack *stack, const void *task, __u32 offset)
{
	stack->word = 0;
	return bpf_probe_read_kernel(&stack->word, sizeof(__u32), task + offset) ? 0 : stack->word;
}

/* The number of the process's parent, if the process has executed nothing since it was forked; else 0. In a pid
 * namespace that is the tracer's the number is not known. */
static __always_inline __u32 forked_by(struct usdt_script_stack *stack)
{
	const volatile struct usdt_thread_offsets *at = &usdt_stock()->threads;
	const void *task = (void *)bpf_get_current_task();

	stack->next = 0;
	if (usdt_kernel()->pidns_ino || !at->parent || !at->exec ||
	    bpf_probe_read_kernel(&stack->next, sizeof(stack->next), task + at->parent) ||
	    half_of_task(stack, task, at->exec) != half_of_task(stack, (const void *)stack->next, at->exec))
		return 0;
	return half_of_task(stack, (const void *)stack->next, at->tgid);
}

/* A process that was forked has what its parent has, in the same places. */
static __always_inline void take_script_stack(struct usdt_script_stack *stack)
{
	__u32 process = usdt_pid_tgid() >> 32;
	const struct usdt_interpreter *known = bpf_map_lookup_elem(&usdt_interpreters, &process);
	const bool is_forked = !known;

	if (is_forked) {
		process = forked_by(stack);
		known = bpf_map_lookup_elem(&usdt_interpreters, &process);
	}
	stack->count = 0;
	stack->state = USDT_SCRIPT_NONE;
	stack->runtime = known ? known->runtime : USDT_RUNTIME_NONE;
	stack->version = known ? known->version : 0;
	if (!known)
		return;
	stack->state = USDT_SCRIPT_OTHER_IMAGE;
	if (is_as_known(known, stack, is_forked))
		follow_script(known, stack);
}

#endif /* USDT_TRACE_SCRIPTS_H */
