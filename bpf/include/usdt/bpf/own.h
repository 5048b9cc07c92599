/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Per-link programs: arguments whose specs the loader writes into the instructions. For BPF programs; included by
 * usdt.bpf.h. */
#ifndef USDT_BPF_OWN_H
#define USDT_BPF_OWN_H

#include "context.h"

/* A 32-bit kernel's registers are loaded otherwise; there usdt_link says all. */
#ifndef __TARGET_ARCH_i386
#define USDT_HAS_MARKS 1
#else
#define USDT_HAS_MARKS 0
#endif

/* What is left of reading an argument in a per-link program, whose loader writes the numbers (enum usdt_mark). Where
 * they stayed as they are here, the kind is none of ours. `n` is a constant. */
#define USDT_OWN_NUMBER(r, mark, n) asm volatile("%0 = %1" : "=r"(r) : "i"((mark) + (n)))
#define USDT_OWN_LOAD_REG(r, regs, n)                    \
	asm volatile("%0 = *(" USDT_LOAD " *)(%1 + 0)\n" \
		     "%0 <<= %2\n"                       \
		     "%0 >>= %2"                         \
		     : "=r"(r)                           \
		     : "r"(regs), "i"(USDT_MARK_CUT + (n)))
#define USDT_OWN_ADDRESS(r, regs, n)                     \
	asm volatile("%0 = *(" USDT_LOAD " *)(%1 + 0)\n" \
		     "%0 += %2"                          \
		     : "=r"(r)                           \
		     : "r"(regs), "i"(USDT_MARK_DISPLACEMENT + (n)))
#define USDT_OWN_TRIM_TO_SIZE(r, n) \
	asm volatile("%0 <<= %1\n"  \
		     "%0 >>= %1"    \
		     : "+r"(r)      \
		     : "i"(USDT_MARK_TRIM + (n)))

/* Registers hold arguments at the entry of a call and its result at the end: marks do not tell them apart, slots do. */
static __always_inline bool usdt_has_marks(const struct usdt_ctx *ctx)
{
	return USDT_HAS_MARKS && usdt_carried_by(ctx, USDT_CARRIER_LINK) && (usdt_in_slots(ctx) || !USDT_CALLS);
}

static __always_inline int usdt_read_own_mem(const struct usdt_ctx *ctx, __u32 n, __u64 *bits)
{
	__u64 address, window, size;

	USDT_OWN_ADDRESS(address, ctx->regs, n);
	USDT_OWN_NUMBER(window, USDT_MARK_WINDOW, n);
	if (!usdt_windows || !window || !usdt_read_window(ctx, window, address, bits)) {
		USDT_OWN_NUMBER(size, USDT_MARK_SIZE, n);
		*bits = 0;
		if (usdt_copy(ctx, bits, size, address))
			return -USDT_EFAULT;
	}
	USDT_OWN_TRIM_TO_SIZE(*bits, n);
	return 0;
}

static __always_inline int usdt_read_own_slot(const struct usdt_ctx *ctx, __u32 n, __u64 *bits)
{
	__u64 slot;
	int error;

	USDT_OWN_NUMBER(slot, USDT_MARK_SLOT, n);
	if (slot > USDT_SLOT_RESULT)
		return 1;
	error = usdt_slot(ctx, slot, bits);
	if (error) {
		*bits = 0;
		return error;
	}
	USDT_OWN_TRIM_TO_SIZE(*bits, n);
	return 0;
}

/* Argument `n` of a per-link program; 1: of a kind that is read as usdt_link says. */
static __always_inline int usdt_read_own(const struct usdt_ctx *ctx, __u32 n, __u64 *bits)
{
	__u64 kind;

	if (usdt_in_slots(ctx))
		return usdt_read_own_slot(ctx, n, bits);
	USDT_OWN_NUMBER(kind, USDT_MARK_KIND, n);
	if (kind == USDT_OWN_REG) {
		USDT_OWN_LOAD_REG(*bits, ctx->regs, n);
		return 0;
	}
	if (kind == USDT_OWN_MEM)
		return usdt_read_own_mem(ctx, n, bits);
	return kind == USDT_OWN_NONE ? -USDT_ENOENT : 1;
}

#endif /* USDT_BPF_OWN_H */
