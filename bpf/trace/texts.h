/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Texts that arguments point to, copied into a record. */
#ifndef USDT_TRACE_TEXTS_H
#define USDT_TRACE_TEXTS_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "../stock.h"
#include "abilities.h"

/* How often an argument that may point to text pointed nowhere, by site. One that does so often is left alone. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct usdt_misreads);
} usdt_misreads SEC(".maps");

/* Programs are linked at 4 MiB or above (x86-64 and arm64 without PIE; i386 at 128 MiB): what is below is no pointer.
 */
#define LOWEST_POINTER 0x400000
/* Reading where nothing is costs 1.2 us, ten times what reading a text does. */
#define MOST_MISREADS 64

/* Copies the text that argument `i` may point to; 0: nothing that can be read. It waits for no page: nobody said that
 * it is text. */
static __always_inline int capture_likely(const struct usdt_ctx *ctx, void *record, const __u32 can, __u32 i, char *to)
{
	struct usdt_event_arg *args = own_args(record, can);
	__u32 site = ((struct usdt_event *)record)->site - usdt_stock()->record.site_base;
	struct usdt_misreads *misreads;
	int length;

	if (args[i].bits < LOWEST_POINTER || i >= USDT_LIKELY_ARGS)
		return 0;
	misreads = bpf_map_lookup_elem(&usdt_misreads, &site);
	if (!misreads || misreads->of_arg[i] >= MOST_MISREADS)
		return 0;
	length = usdt_copy_text(ctx, to, usdt_stock()->record.string_size, args[i].bits);
	if (length >= 0)
		return length;
	misreads->of_arg[i]++;
	return 0;
}

/* Copies a text with a length: as many bytes as fit and one more, which shows that it was cut. */
static __always_inline int capture_bytes(const struct usdt_ctx *ctx, char *to, __u64 length, __u64 pointer)
{
	__u64 most = usdt_stock()->record.string_size - 1;

	if ((__s64)length < 0)
		return -USDT_ERANGE;
	if (length == 0)
		return 1;
	if (length > most)
		length = most;
	/* As in capture(). */
	asm volatile("" : "+r"(length));
	if (length == 0 || length > most)
		return -USDT_ERANGE;
	if (usdt_copy_bytes(ctx, to, length, pointer))
		return -USDT_EFAULT;
	return length + 1;
}

/* The text argument `i` points to, into a slot of the record; 0: its length is not known yet. */
static __always_inline int capture(const struct usdt_ctx *ctx, void *record, const __u32 can, __u32 i, __u32 how,
				   __u64 slot)
{
	struct usdt_event_arg *args = own_args(record, can);
	__u64 text = slot * usdt_stock()->record.string_size, by = USDT_CAPTURE_ARG(i, how), length;
	__u32 at = sizeof(struct usdt_event) + args_of_record(can) * sizeof(struct usdt_event_arg) +
		   usdt_stock()->record.stack_depth * sizeof(__u64);
	char *to;
	int error;

	/* Checked just before it is used: verifiers of old kernels (5.10) forget the bounds of what was spilled. */
	asm volatile("" : "+r"(text));
	if (!usdt_stock()->record.string_slots ||
	    text > (usdt_stock()->record.string_slots - 1ull) * usdt_stock()->record.string_size)
		return 0;
	to = record + at + text;
	asm volatile("" : "+r"(to));
	if (how == USDT_CAPTURE_LIKELY)
		return capture_likely(ctx, record, can, i, to);
	if (how == USDT_CAPTURE_STRING)
		return usdt_copy_text(ctx, to, usdt_stock()->record.string_size, args[i].bits);
	asm volatile("" : "+r"(by));
	if (by >= usdt_program()->max_args)
		return -USDT_ENOENT;
	error = args[by].error;
	if (error)
		return error == -USDT_ENODATA && usdt_calls() && !ctx->returns ? 0 : error;
	length = args[by].bits;
	if (how >= USDT_CAPTURE_END)
		length -= args[i].bits;
	return capture_bytes(ctx, to, length, args[i].bits);
}

/* Whether it is the end of a call, whose beginning found that an argument points to no text: what is there now, the
 * call was not passed. */
static __always_inline bool is_too_late(const struct usdt_ctx *ctx, const struct usdt_arg_spec *spec, const __u32 can)
{
	return (can & COPIES_MEMORY) && usdt_calls() && ctx->returns && spec->capture == USDT_CAPTURE_LIKELY &&
	       !(spec->flags & USDT_ARG_RESULT);
}

/* Texts behind all values, since some of those are their lengths. Packed specs have none. */
static __always_inline void capture_texts(void *record, const struct usdt_ctx *ctx, const __u32 can)
{
	struct usdt_event_arg *args = own_args(record, can);
	struct usdt_cursor at = {};
	struct usdt_arg_spec spec;
	__u64 slot = can & ENDS_SPANS ? usdt_program()->first_text : 0;

	if (!usdt_stock()->record.string_slots || usdt_is_packed(ctx))
		return;
	for (__u32 i = 0; i < usdt_program()->max_args && usdt_next_spec(ctx, &at, &spec); i++) {
		if (!spec.capture)
			continue;
		if (!args[i].error && !args[i].text && !is_too_late(ctx, &spec, can))
			args[i].text = capture(ctx, record, can, i, spec.capture, slot);
		slot = usdt_opaque(ctx, slot + 1);
	}
}

/* The address that a pointer is, as a number: questions have no pointers. To verifiers what is negated is none. */
static __always_inline __u64 number_of(const void *pointer)
{
	__u64 number = (__u64)pointer;

	asm volatile("%0 = -%0" : "+r"(number));
	return -number;
}

/* Finds value `i` of the question if it is a text in the record, copied when the span or call began; false: the record
 * lacks it, or a part of it that is wanted. */
static __always_inline bool find_kept_text(const struct usdt_event *event, __u32 i, const __u32 can, __u64 *address)
{
	const struct usdt_event_arg *args = (const void *)event + sizeof(*event);
	const struct usdt_event_arg *arg = &args[usdt_program()->filter_args[i]];
	const __u32 slot = (usdt_program()->filter_texts[i] & USDT_KEPT_TEXT) - 1;
	const __u32 texts =
	    sizeof(*event) + args_of_record(can) * sizeof(*args) + usdt_stock()->record.stack_depth * sizeof(__u64);
	const bool whole = (usdt_program()->filter_texts[i] & USDT_KEPT_TEXT_WHOLE) ||
			   usdt_stock()->record.string_size < USDT_ROW_WORDS * sizeof(__u64) + 2;

	*address = number_of(event) + texts + slot * usdt_stock()->record.string_size;
	if (arg->error || arg->text <= 0)
		return false;
	return !whole || arg->text < (__s32)usdt_stock()->record.string_size;
}

/* Waits for the pages a text may be on: its first one, and the next where the text may get there. */
static __always_inline void page_in_text(__u64 text)
{
	const __u64 next = (text | (USDT_PAGE - 1)) + 1;
	char touched;

	bpf_copy_from_user(&touched, 1, (const void *)text);
	if (next - text < usdt_stock()->record.string_size)
		bpf_copy_from_user(&touched, 1, (const void *)next);
}

#endif /* USDT_TRACE_TEXTS_H */
