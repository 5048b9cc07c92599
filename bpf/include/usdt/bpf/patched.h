/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Reads arguments whose specs the loader writes into the instructions of per-link programs (enum usdt_patch_arg of
 * spec.h), for BPF programs: usdt_patched_arg(). usdt.bpf.h includes it. */
#ifndef USDT_BPF_PATCHED_H
#define USDT_BPF_PATCHED_H

#include "memory.h"
#include "slots.h"

/* Not in programs for 32-bit kernels, whose registers are loaded differently: these read link_spec. */
#if USDT_TARGET(ADDRESS_SIZE) == 8
#define USDT_CAN_PATCH 1
#else
#define USDT_CAN_PATCH 0
#endif

/* The instructions with placeholders for argument `n`, a constant: a number; a register cut to its size; the sum of a
 * register and a displacement; what was read, cut to its size. */
#define USDT_PATCHED_NUMBER(r, placeholder, n) asm volatile("%0 = %1" : "=r"(r) : "i"((placeholder) + (n)))
#define USDT_PATCHED_LOAD "%0 = *(" USDT_TARGET(REG_LOAD) " *)(%1 + 0)\n"
#define USDT_PATCHED_REG_LOAD(r, regs, n) \
	asm volatile(USDT_PATCHED_LOAD "%0 <<= %2\n%0 >>= %2" : "=r"(r) : "r"(regs), "i"(USDT_PATCH_ARG_CUT + (n)))
#define USDT_PATCHED_ADDRESS(r, regs, n) \
	asm volatile(USDT_PATCHED_LOAD "%0 += %2" : "=r"(r) : "r"(regs), "i"(USDT_PATCH_ARG_DISPLACEMENT + (n)))
#define USDT_PATCHED_TRIM(r, n) asm volatile("%0 <<= %1\n%0 >>= %1" : "+r"(r) : "i"(USDT_PATCH_ARG_TRIM + (n)))

/* Argument `n`, which is in memory. 0 or -EFAULT. */
static __always_inline int usdt_patched_mem(const struct usdt_ctx *ctx, __u32 n, __u64 *bits)
{
	__u64 address, window, size;

	USDT_PATCHED_ADDRESS(address, ctx->regs, n);
	USDT_PATCHED_NUMBER(window, USDT_PATCH_ARG_WINDOW, n);
	USDT_PATCHED_NUMBER(size, USDT_PATCH_ARG_SIZE, n);
	if (usdt_read_memory(ctx, window, size, address, bits))
		return -USDT_EFAULT;
	USDT_PATCHED_TRIM(*bits, n);
	return 0;
}

/* Argument `n`, which is in a slot. 0, or as usdt_slot(). */
static __always_inline int usdt_patched_slot(const struct usdt_ctx *ctx, __u32 n, __u64 *bits)
{
	__u64 slot;
	int error;

	USDT_PATCHED_NUMBER(slot, USDT_PATCH_ARG_SLOT, n);
	error = usdt_slot(ctx, slot, bits);
	if (error) {
		*bits = 0;
		return error;
	}
	USDT_PATCHED_TRIM(*bits, n);
	return 0;
}

/* Argument `n` if the loader wrote it into the instructions. 0 or a negative errno; 1: it did not. The kinds are asked
 * for one by one, so that each that the program does not have is a branch that the verifier removes; of a switch clang
 * would make a table, of which some would stay. */
static __always_inline int usdt_patched_arg(const struct usdt_ctx *ctx, __u32 n, __u64 *bits)
{
	__u64 kind;

	USDT_PATCHED_NUMBER(kind, USDT_PATCH_ARG_KIND, n);
	if (kind == USDT_PATCHED_REG) {
		USDT_PATCHED_REG_LOAD(*bits, ctx->regs, n);
		return 0;
	}
	asm volatile("" : "+r"(kind));
	if (kind == USDT_PATCHED_MEM)
		return usdt_patched_mem(ctx, n, bits);
	asm volatile("" : "+r"(kind));
	if (kind == USDT_PATCHED_SLOT && usdt_in_slots(ctx))
		return usdt_patched_slot(ctx, n, bits);
	return 1;
}

#endif /* USDT_BPF_PATCHED_H */
