/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* From an argument's spec to its value. For BPF programs. */
#ifndef USDT_BPF_VALUE_H
#define USDT_BPF_VALUE_H

#include "memory.h"
#include "slots.h"

/* The address of MEM and ADDR (spec.h) from the words its registers hold. 0, or as usdt_thread_base(). */
static __always_inline int usdt_address(const struct usdt_ctx *ctx, const struct usdt_arg_spec *spec, __u64 base,
					__u64 index, __u64 *address)
{
	__u8 flags = spec->flags;
	__u64 thread = 0;
	int error;

	if (flags & USDT_ARG_INDEX_U32)
		index = (__u32)index;
	if (flags & USDT_ARG_INDEX_S32)
		index = (__s64)(__s32)index;
	*address = spec->value + base + (index << (spec->shift & 7));
	if (flags & USDT_ARG_IP)
		*address += usdt_ip(ctx->regs);
	if (usdt_kernel()->thread_args && flags & USDT_ARG_THREAD) {
		error = usdt_thread_base(&thread, flags & USDT_ARG_ADDR32);
		if (error)
			return error;
		*address += thread;
	}
	if (flags & USDT_ARG_ADDR32)
		*address = (__u32)*address;
	return 0;
}

/* The value one spec describes, extended to 64 bits by its sign; floats as their bits. The two registers are picked at
 * one place each: every further one would cost the verifier, and so the start of a trace, as much again. */
static __always_inline int usdt_read(const struct usdt_ctx *ctx, const struct usdt_arg_spec *spec, __u64 *value)
{
	/* 1 to 8 in a form that every verifier since 5.15 can see; the planner writes no other. */
	__u32 size = ((spec->size - 1) & 7) + 1;
	__u64 base = 0, index = 0, bits = 0;
	__u8 kind = spec->kind, flags = spec->flags;
	int error;

	*value = 0;
	if (kind == USDT_ARG_CONST) {
		*value = spec->value;
		return 0;
	}
	if (kind != USDT_ARG_REG && kind != USDT_ARG_MEM && kind != USDT_ARG_ADDR)
		return -USDT_EOPNOTSUPP;
	/* Without bpf_get_func_ret() the slot of the result is read at the entry, too, where it is not yet one. */
	if (ctx->source == USDT_SOURCE_OLD_SLOTS && flags & USDT_ARG_RESULT && !ctx->returns)
		return -USDT_ENODATA;
	if (usdt_in_slots(ctx))
		return kind == USDT_ARG_REG ? usdt_read_slot(ctx, spec->reg, size, flags & USDT_ARG_SIGNED, value)
					    : -USDT_EOPNOTSUPP;
	/* Registers hold the arguments at the entry, and the result at the end. */
	if (usdt_calls() && !(flags & USDT_ARG_RESULT) == ctx->returns)
		return -USDT_ENODATA;
	if (spec->reg != USDT_REG_NONE)
		base = usdt_reg(ctx->regs, spec->reg);
	if (spec->index != USDT_REG_NONE)
		index = usdt_reg(ctx->regs, spec->index);

	if (kind == USDT_ARG_REG) {
		bits = base >> (spec->shift & 63);
		if (flags & USDT_ARG_PAIR)
			bits = (__u32)bits | index << 32;
	} else {
		error = usdt_address(ctx, spec, base, index, &bits);
		if (!error && kind == USDT_ARG_MEM)
			error = usdt_read_memory(ctx, spec->window, size, bits, &bits);
		if (error)
			return error;
	}
	*value = usdt_extend(bits, size, flags & USDT_ARG_SIGNED);
	return 0;
}

#endif /* USDT_BPF_VALUE_H */
