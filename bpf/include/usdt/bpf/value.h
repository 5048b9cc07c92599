/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Reads the value of an argument by its spec, for BPF programs: usdt_value() takes its address, the registers and
 * memory, and the steps. usdt.bpf.h includes it. */
#ifndef USDT_BPF_VALUE_H
#define USDT_BPF_VALUE_H

#include "memory.h"
#include "slots.h"

/* The address of MEM and ADDR (spec.h), of which `base` and `index` are the words in its registers. 0, or the error of
 * usdt_thread_base(). */
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

/* The value at one entry of a spec, without its steps: extended to 64 bits by its sign; of floats their bits. 0, or the
 * error as of usdt_arg(). The two registers are loaded in one place each: every further place would cost the verifier,
 * and so the start of a trace, as much again. */
static __always_inline int usdt_read(const struct usdt_ctx *ctx, const struct usdt_arg_spec *spec, __u64 *value)
{
	/* Always 1 to 8, which the planner writes, in a form from which every verifier since Linux 5.15 can tell so. */
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
	/* Without bpf_get_func_ret() the slot of the result could be read at the entry, too, where it has none yet. */
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

/* Entry `n` of a spec in memory, an argument or a step; false: there is no such entry. */
static __always_inline bool usdt_spec_entry(const struct usdt_ctx *ctx, __u32 n, struct usdt_arg_spec *entry)
{
	const struct usdt_spec *found = usdt_spec_of(ctx->spec);

	asm volatile("" : "+r"(n));
	if (!found || n >= (usdt_carried_by(ctx, USDT_CARRIER_LINK) ? USDT_LINK_ENTRIES : usdt_program()->max_entries))
		return false;
	*entry = found->args[n];
	return true;
}

/* The lowest bytes of `word` turned around, as many as `window` of a step says. Without a branch, which each step of
 * each argument would cost the verifier again. */
static __always_inline __u64 usdt_turned(__u64 word, __u8 window)
{
	const __u64 turn = -(__u64)(window >> 7);
	const __u32 size = ((window - 1) & 7) + 1;

	return (__builtin_bswap64(word) >> (64 - 8 * size) & turn) | (word & ~turn);
}

/* Takes one step (USDT_ARG_STEP of spec.h) from *value. 0, or -EFAULT with the address in *value. */
static __always_inline int usdt_take_step(const struct usdt_ctx *ctx, const struct usdt_arg_spec *step, __u64 *value)
{
	__u64 address = *value + step->value, word = 0;
	__u32 size, spare;

	if (step->flags & USDT_ARG_ADDR32)
		address = (__u32)address;
	*value = address;
	if (step->size) {
		size = ((step->size - 1) & 7) + 1;
		if (usdt_copy_bytes(ctx, (char *)&word, size, address))
			return -USDT_EFAULT;
		word = usdt_extend(usdt_turned(word, step->window), size, step->flags & USDT_ARG_SIGNED);
	} else {
		word = usdt_turned(address, step->window);
	}
	word >>= step->shift & 63;
	if (step->index) {
		spare = (64 - step->index) & 63;
		word =
		    step->flags & USDT_ARG_SIGNED ? (__u64)((__s64)(word << spare) >> spare) : word << spare >> spare;
	}
	*value = word;
	return 0;
}

/* Takes the steps of one value from *value on, beginning with step `first` of the spec. 0; or a negative errno, as of
 * usdt_value(). */
static __always_inline int usdt_follow(const struct usdt_ctx *ctx, __u32 first, __u64 *value, __u32 *failed)
{
	const struct usdt_spec *found = usdt_spec_of(ctx->spec);
	struct usdt_arg_spec step;
	int error;

	if (!found)
		return -USDT_ENOENT;
	first += found->arg_cnt;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < usdt_program()->max_steps; i++) {
		if (!usdt_spec_entry(ctx, first + i, &step))
			return -USDT_ENOENT;
		error = usdt_take_step(ctx, &step, value);
		if (error)
			*failed = i + 1;
		if (error || !step.reg)
			return error;
	}
	return -USDT_ENOENT;
}

/* The number of the first step of an argument; -1: it has none. Removes the steps from `spec`, so that usdt_read()
 * reads where they begin. */
static __always_inline int usdt_split_steps(struct usdt_arg_spec *spec)
{
	const __u8 steps = spec->kind >> 7;
	const int first = steps ? spec->window : -1;

	spec->kind = USDT_ARG_KIND(spec->kind);
	spec->window &= (__u8)(steps - 1);
	return first;
}

/* Reads the value of an argument: that of usdt_read(), or the one that steps lead to from there. Returns 0 or a
 * negative errno. Where a step could not be taken, *failed is its number, from 1, and *value the address that could not
 * be read; else *failed is 0. Removes the steps from `spec`. */
static __always_inline int usdt_value(const struct usdt_ctx *ctx, struct usdt_arg_spec *spec, __u64 *value,
				      __u32 *failed)
{
	const int first = usdt_split_steps(spec);
	int error = usdt_opaque(ctx, usdt_read(ctx, spec, value));

	*failed = 0;
	return error || first < 0 ? error : usdt_follow(ctx, first, value, failed);
}

#endif /* USDT_BPF_VALUE_H */
