/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The trace and span that the thread at a hit works for. The thread stands still, so that its record is read whole. */
#ifndef USDT_TRACE_CONTEXT_H
#define USDT_TRACE_CONTEXT_H

#include <usdt/bpf/filter.h>
#include <usdt/bpf/thread_context.h>
#include <usdt/bpf/usdt.bpf.h>
#include "../stock.h"
#include "task_words.h"

/* Places of processes that were looked at. The loader makes room where contexts are asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct usdt_context_place);
} usdt_context_places SEC(".maps");

/* Where the variable of a thread is, since it was found. The loader makes this storage of tasks where contexts are
 * asked for: the kernel keeps it with the thread. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, struct usdt_found_variable);
} usdt_found_variables SEC(".maps");

/* Processes that were asked about before their places were known: no event tells of a hit that a question has no answer
 * for. The loader makes room where contexts are asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} usdt_context_wanted SEC(".maps");

/* When the process of a task began. */
static __always_inline __u64 beginning_of(const void *task)
{
	const void *leader = TASK_WORD(void *, task, usdt_stock()->threads.leader);

	return TASK_WORD(__u64, leader, usdt_stock()->threads.start);
}

/* The place of process `pid`, which `task` is of, if it executes `image`. */
static __always_inline const struct usdt_context_place *place_of(__u32 pid, const void *task, const __u64 *image)
{
	const __u64 key = usdt_context_key(pid, image);
	const struct usdt_context_place *place = bpf_map_lookup_elem(&usdt_context_places, &key);

	return place && place->pid == pid && place->image[0] == image[0] && place->image[1] == image[1] &&
		       place->image[2] == image[2] && place->image[3] == image[3] &&
		       place->looked_at > beginning_of(task)
		   ? place
		   : NULL;
}

/* A word of the program that the process executes. */
#define IMAGE_WORD(memory, member) TASK_WORD(__u64, memory, usdt_stock()->image.member)

/* Where process `pid`, the current one, has the variable; NULL: it is not known. In a pid namespace that is the
 * tracer's the number of the parent is not. */
static __always_inline const struct usdt_context_place *find_context_place(const void *task, const void *memory,
									   __u32 pid)
{
	const __u64 image[USDT_IMAGE_WORDS] = {
	    IMAGE_WORD(memory, code_start),
	    IMAGE_WORD(memory, code_end),
	    IMAGE_WORD(memory, stack),
	    IMAGE_WORD(memory, arguments),
	};
	const struct usdt_context_place *place = place_of(pid, task, image);
	const void *parent;

	if (place || usdt_kernel()->pidns_ino)
		return place;
	parent = TASK_WORD(void *, task, usdt_stock()->threads.parent);
	place = place_of(TASK_WORD(__u32, parent, usdt_stock()->threads.tgid), parent, image);
	return place && place->looked_at < beginning_of(task) ? place : NULL;
}

/* Whether the thread has executed the program. One that another thread began has its pointer from the beginning, by
 * clone() or by fork(). */
static __always_inline bool has_executed(const void *task)
{
	const __u32 forked = 0x40; /* PF_FORKNOEXEC (include/linux/sched.h) */

	return TASK_WORD(void *, task, usdt_stock()->threads.leader) == task &&
	       !(TASK_WORD(__u32, task, usdt_stock()->late_pointer.flags) & forked);
}

/* The number of the program that the thread executes: another one after each execve(). */
static __always_inline __u64 execution_of(const void *task)
{
	return TASK_WORD(__u64, task, usdt_stock()->threads.exec);
}

/* How often the thread was switched out. */
static __always_inline __u64 count_switches(const void *task)
{
	return TASK_WORD(__u64, task, usdt_stock()->late_pointer.switches) +
	       TASK_WORD(__u64, task, usdt_stock()->late_pointer.preemptions);
}

/* Reads the area that the thread has registered by rseq(2). The verifier takes a load of it for a pointer to a struct,
 * with which it does not let this program calculate. */
static __always_inline bool has_registered(const void *task, __u64 *area)
{
	const __u32 offset = usdt_stock()->late_pointer.rseq;

	return offset && !bpf_probe_read_kernel(area, sizeof(*area), (const char *)task + offset) && *area;
}

/* The pointer of a thread that has executed its program, where the kernel has that late (usdt_thread_base()). The area
 * for rseq(2) is at a distance from the pointer which the C library tells, and the kernel forgets that area at each
 * execution. Without it the kernel's pointer is this program's if it has become another one than at the thread's first
 * hit, or if the thread was switched out twice since then: the last time is counted before the pointer is kept, between
 * which the scheduler may have a hit. What is counted is read first, since this program may be preempted. 0, or
 * -ENXIO. */
static __always_inline int late_pointer(void *task, __u64 rseq, __u64 *base)
{
	const __u64 execution = execution_of(task);
	const __u64 switches = count_switches(task);
	struct usdt_found_variable *seen;

	seen = bpf_task_storage_get(&usdt_found_variables, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!seen)
		return -USDT_ENXIO;
	if (rseq && has_registered(task, &seen->area)) {
		*base = seen->area - rseq;
		return 0;
	}
	*base = TASK_WORD(__u64, task, usdt_kernel()->thread_fsbase_offset);
	if (seen->first_execution != execution) {
		seen->first_pointer = *base;
		seen->first_switches = switches;
		asm volatile("" ::: "memory");
		seen->first_execution = execution;
		return -USDT_ENXIO;
	}
	return *base && (*base != seen->first_pointer || switches - seen->first_switches >= 2) ? 0 : -USDT_ENXIO;
}

/* The thread pointer, as usdt_thread_base() has it, without its doubts: the process is known to have one. */
static __always_inline int thread_pointer(void *task, __u32 word_size, __u64 rseq, __u64 *base)
{
	if (word_size == sizeof(__u32) && USDT_TARGET(ADDRESS_SIZE) != sizeof(__u32))
		return usdt_thread_base(base, true);
	if (!usdt_kernel()->thread_fsbase_offset)
		return -USDT_ENODATA;
	if (USDT_TARGET(THREAD_LATE) && usdt_stock()->late_pointer.flags && has_executed(task))
		return late_pointer(task, rseq, base);
	*base = TASK_WORD(__u64, task, usdt_kernel()->thread_fsbase_offset);
	return 0;
}

/* Whether the vector is as it was when the variable was found. */
static __always_inline bool is_vector_as_before(const struct usdt_found_variable *found)
{
	__u64 generation;

	return !found->vector ||
	       (!usdt_read_word(&generation, found->word_size, found->vector) && generation == found->generation);
}

/* Looks up what was found before: reading memory of the process takes 20 to 60 ns each time, and the way to a library's
 * variable has three of these, where one is enough to see that nothing has changed. NULL: nothing was found, or it is
 * elsewhere now. */
static __always_inline const struct usdt_found_variable *known_variable(void *task, const void *memory)
{
	const struct usdt_found_variable *found = bpf_task_storage_get(&usdt_found_variables, task, NULL, 0);
	__u64 base;

	return found && found->execution == execution_of(task) && found->code_pages == IMAGE_WORD(memory, code_pages) &&
		       !thread_pointer(task, found->word_size, found->rseq, &base) && base == found->base &&
		       is_vector_as_before(found)
		   ? found
		   : NULL;
}

static __always_inline void remember_variable(void *task, const void *memory,
					      const struct usdt_thread_variable *variable, __u64 base, __u64 address)
{
	const __u32 size = variable->word_size;
	struct usdt_found_variable *found =
	    bpf_task_storage_get(&usdt_found_variables, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!found)
		return;
	*(volatile __u64 *)&found->base = 0; /* a hit that preempts this one in the same thread finds nothing */
	found->execution = execution_of(task);
	found->code_pages = IMAGE_WORD(memory, code_pages);
	found->address = address;
	found->word_size = size;
	found->rseq = variable->rseq;
	found->vector = 0;
	if (variable->module && (usdt_read_word(&found->vector, size, base + variable->vector_at) || !found->vector ||
				 usdt_read_word(&found->generation, size, found->vector)))
		return;
	asm volatile("" ::: "memory");
	found->base = base;
}

/* The attributes behind a context in a record; NULL: nobody asks for them. What is known before they are read is kept
 * there, too, since programs have little room: the address of the header, and that of the thread's record. */
static __always_inline struct usdt_thread_attributes *attributes_behind(struct usdt_thread_context *context)
{
	return context && usdt_stock()->record.attributes ? (void *)(context + 1) : NULL;
}

/* The address of the thread's record, 0: it has none. `context`, which may be NULL, is what is taken of it. Returns 0
 * or a negative errno (enum usdt_context_state). */
static __always_inline int find_context(__u64 *record, __u32 pid, struct usdt_thread_context *context)
{
	void *task = bpf_get_current_task_btf();
	const void *memory = TASK_WORD(void *, task, usdt_stock()->image.memory);
	const struct usdt_found_variable *found;
	const struct usdt_context_place *place;
	__u64 base, variable;
	int error;

	*record = 0;
	if (!IMAGE_WORD(memory, stack)) /* a thread of the kernel */
		return 0;
	/* What attributes are called is known of the process alone. */
	found = attributes_behind(context) ? NULL : known_variable(task, memory);
	if (found)
		return usdt_read_word(record, found->word_size, found->address) ? -USDT_EFAULT : 0;
	place = find_context_place(task, memory, pid);
	if (!place)
		return -USDT_ENOENT;
	if (attributes_behind(context)) {
		const bool own = place->pid == pid; /* and not its parent's */

		attributes_behind(context)->place = own ? place->number : 0;
		attributes_behind(context)->published_at = own ? place->page : 0;
	}
	if (place->state != USDT_CONTEXT_SET)
		return IMAGE_WORD(memory, code_pages) == place->code_pages ? place->state : -USDT_ENOENT;
	error = thread_pointer(task, place->variable.word_size, place->variable.rseq, &base);
	if (!error)
		error = usdt_find_thread_variable(&place->variable, base, &variable);
	if (error)
		return error == -USDT_ENOENT ? 0 : error;
	if (!attributes_behind(context))
		remember_variable(task, memory, &place->variable, base, variable);
	return usdt_read_word(record, place->variable.word_size, variable) ? -USDT_EFAULT : 0;
}

/* Reads the attributes of a context that was read. Other threads of the process may change meanwhile what those are
 * called: the time tells. */
static __always_inline void take_attributes(struct usdt_thread_attributes *to, __u32 size)
{
	const void *record = *(void **)to->bytes, *page = (const void *)to->published_at;

	to->size = 0;
	if (!size)
		return;
	if (page && bpf_probe_read_user(&to->published_at, sizeof(__u64), page + USDT_CONTEXT_PUBLISHED_AT))
		to->published_at = 0;
	if (size > USDT_CONTEXT_ATTRIBUTE_BYTES)
		size = USDT_CONTEXT_ATTRIBUTE_BYTES;
	to->size = bpf_probe_read_user(to->bytes, size, record + USDT_CONTEXT_RECORD) ? -USDT_EFAULT : (int)size;
}

static __always_inline void take_context(struct usdt_thread_context *to, __u32 pid)
{
	__u64 record;
	int state = find_context(&record, pid, to);

	if (attributes_behind(to))
		*(__u64 *)attributes_behind(to)->bytes = record;
	if (!state && record) {
		state = bpf_probe_read_user(to, USDT_CONTEXT_RECORD, (const void *)record) ? -USDT_EFAULT
											   : USDT_CONTEXT_SET;
		if (state == USDT_CONTEXT_SET && to->valid != 1)
			state = -USDT_EAGAIN;
	}
	if (state != USDT_CONTEXT_SET) /* as what is kept of a call is asked later */
		__builtin_memset(to, 0, USDT_CONTEXT_RECORD);
	to->state = state;
	if (attributes_behind(to))
		take_attributes(attributes_behind(to), to->attributes_size);
}

/* Whether the number of a question's value stands for a word of the context. */
static __always_inline bool is_of_context(__u32 n)
{
	return usdt_stock()->record.context_at && n >= USDT_BEGIN_TRACE && n <= USDT_BEGIN_TRACE_SPAN;
}

/* One of the three words, as a record has them. False: it could not be read. */
static __always_inline bool context_word(const void *record, __u32 n, __u64 *word)
{
	const struct usdt_thread_context *context = record + usdt_stock()->record.context_at;

	*word = ((const __u64 *)context)[n == USDT_BEGIN_TRACE ? 0 : n == USDT_BEGIN_TRACE_REST ? 1 : 2];
	return context->state >= 0;
}

/* Asks user space to look at a process. Where many are asked about at once, some of them are at their next hits. */
static __always_inline void want_place(__u32 pid)
{
	if (pid)
		update_elem(&usdt_context_wanted, &pid, &pid, BPF_NOEXIST);
}

/* Puts the context at this hit into a question that was begun, where it is asked for. */
static __always_inline void put_context(struct usdt_question *question)
{
	__u64 record, word;
	int state = 0;
	bool found = false;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < USDT_FILTER_VALUES; i++) {
		const __u32 n = usdt_program()->filter_args[i];

		if (i >= usdt_program()->filter_values)
			break;
		if (!is_of_context(n))
			continue;
		if (!found) {
			found = true;
			state = find_context(&record, usdt_pid_tgid() >> 32, NULL);
			if (state == -USDT_ENOENT)
				want_place(usdt_pid_tgid() >> 32);
			if (!state && record &&
			    (bpf_probe_read_user(&word, sizeof(word), (const void *)record + 24) || (__u8)word != 1))
				state = -USDT_EAGAIN;
		}
		word = 0;
		if (!state && record &&
		    bpf_probe_read_user(&word, sizeof(word), (const void *)record + 8 * (n - USDT_BEGIN_TRACE)))
			state = -USDT_EFAULT;
		usdt_put_value(question, i, word);
		if (!state)
			question->unread &= ~(1u << i);
	}
}

#endif /* USDT_TRACE_CONTEXT_H */
