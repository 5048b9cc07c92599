/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Programs that are given their arguments in slots of 8 bytes, at kernel functions and raw tracepoints; and what tells
 * one end of a call from the other, and one call from another. */
#ifndef USDT_BPF_SLOTS_H
#define USDT_BPF_SLOTS_H

#include "regs.h"

/* One load at a constant offset, for the reason that USDT_LOAD_REG gives. */
#define USDT_LOAD_SLOT(dst, slots, offset) asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(dst) : "r"(slots), "i"(offset))
#define USDT_SLOT_CASE(n)                             \
	case n:                                       \
		USDT_LOAD_SLOT(*value, slots, 8 * n); \
		return 0;

/* Slot `slot` of a raw tracepoint. 0 or -ENOENT. */
static __always_inline int usdt_raw_slot(void *slots, __u8 slot, __u64 *value)
{
	switch (slot) {
		USDT_SLOT_CASE(0)
		USDT_SLOT_CASE(1)
		USDT_SLOT_CASE(2)
		USDT_SLOT_CASE(3)
		USDT_SLOT_CASE(4)
		USDT_SLOT_CASE(5)
		USDT_SLOT_CASE(6)
		USDT_SLOT_CASE(7)
		USDT_SLOT_CASE(8)
		USDT_SLOT_CASE(9)
		USDT_SLOT_CASE(10)
		USDT_SLOT_CASE(11)
	}
	return -USDT_ENOENT;
}
#undef USDT_SLOT_CASE

/* The word in slot `slot`; USDT_SLOT_RESULT is the return value. 0, -ENODATA where that is not there yet, or the error
 * of the kernel's helper. */
static __always_inline int usdt_slot(const struct usdt_ctx *ctx, __u8 slot, __u64 *value)
{
	__u64 word = 0; /* on the stack, so that the value itself need not be */
	int error;

	/* Only where the slot is a constant, so that the other loads are removed: the kernel refuses a program that has
	 * a load of an argument that the tracepoint does not have. */
	if (ctx->source == USDT_SOURCE_RAW && usdt_carried_by(ctx, USDT_CARRIER_LINK))
		return usdt_raw_slot(ctx->regs, slot, value);
	/* Before bpf_get_func_arg() (Linux 5.17), and for tp_btf, the slot is read from the context. A plain load would
	 * not do: to the verifier a slot with a pointer gives a pointer, which cannot be cut to its size. */
	if (ctx->source == USDT_SOURCE_RAW || ctx->source == USDT_SOURCE_OLD_SLOTS)
		error = bpf_probe_read_kernel(&word, sizeof(word), (char *)ctx->regs + 8 * (slot & 15));
	else if (slot == USDT_SLOT_RESULT)
		error = ctx->returns ? bpf_get_func_ret(ctx->regs, &word) : -USDT_ENODATA;
	else
		error = bpf_get_func_arg(ctx->regs, slot, &word);
	*value = word;
	return error;
}

/* The lowest `size` bytes of a slot, extended to 64 bits. 0, or as usdt_slot(). */
static __always_inline int usdt_read_slot(const struct usdt_ctx *ctx, __u8 slot, __u32 size, bool is_signed,
					  __u64 *value)
{
	int error;

	*value = 0;
	error = usdt_slot(ctx, slot, value);
	*value = error ? 0 : usdt_extend(*value, size, is_signed);
	return error;
}

/* Calls a kfunc whose number the loader writes there. It is given the context, which kernels before 7.0 ignore. */
#define USDT_CALL_SESSION(result, regs, patch) \
	asm volatile("r1 = %1\n"               \
		     "call %2\n"               \
		     "%0 = r0"                 \
		     : "=r"(result)            \
		     : "r"(regs), "i"(patch)   \
		     : "r0", "r1", "r2", "r3", "r4", "r5", "memory")

/* Whether this hit is the end of a call: for programs at returns always, for sessions when they run the second time. */
static __always_inline bool usdt_at_return(void *regs)
{
#ifdef USDT_SITES_ONLY
	return false;
#else
	__u64 returns;

	if (usdt_program()->moment != (USDT_AT_ENTRY | USDT_AT_RETURN))
		return usdt_program()->moment == USDT_AT_RETURN;
	USDT_CALL_SESSION(returns, regs, USDT_PATCH_IS_RETURN);
	return returns & 0xff;
#endif
}

/* In sessions: 8 bytes that belong to the call. Its end finds in them what its entry wrote. */
static __always_inline __u64 *usdt_session_cookie(const struct usdt_ctx *ctx)
{
	__u64 *cookie;

	USDT_CALL_SESSION(cookie, ctx->regs, USDT_PATCH_SESSION_COOKIE);
	return cookie;
}

/* Returns a number that both ends of a call have, and that no other call which the thread is in has at that time, for
 * calls whose ends run two programs. */
static __always_inline __u64 usdt_frame(const struct usdt_ctx *ctx)
{
	__u64 frame;

	/* The slots of a call are in one place, at both ends. */
	if (usdt_in_slots(ctx))
		return (__u64)ctx->regs;
	/* A process's stack pointer is known where it enters and leaves a function, whatever it does with frames. */
	if (ctx->source == USDT_SOURCE_USER)
		frame = usdt_reg(ctx->regs, USDT_TARGET(STACK_WORD));
	else
		USDT_LOAD_REG(frame, ctx->regs, USDT_TARGET(FRAME_OFFSET));
	if (!USDT_TARGET(RETURN_POPS) || !ctx->returns || usdt_program()->return_by != USDT_RETURN_BY_PROBE)
		return frame;
	return frame - (ctx->source == USDT_SOURCE_USER ? usdt_address_size(ctx->regs) : USDT_TARGET(RETURN_POPS));
}

/* Mixes the registers that functions of C leave as they found them: two calls by different callers differ in them, as
 * good as always, and both ends of one call have equal ones. Other languages may keep other registers. */
static __always_inline __u64 usdt_kept_registers(const struct usdt_ctx *ctx)
{
	static const __u8 words[] = {USDT_TARGET(KEPT_WORDS)};
	__u64 mixed = 0;

#pragma unroll
	for (__u32 i = 0; i < sizeof(words); i++)
		mixed = (mixed + usdt_reg(ctx->regs, words[i])) * 0x9e3779b97f4a7c15ull;
	return mixed;
}

/* Tells calls of Go apart: the address of the goroutine that runs, and the depth of its stack in bytes. Neither changes
 * when Go moves the stack. False: no goroutine runs here. */
static __always_inline bool usdt_goroutine(const struct usdt_ctx *ctx, __u64 *goroutine, __u64 *depth)
{
#ifdef USDT_SITES_ONLY
	return false;
#else
	struct {
		__u64 low, high;
	} stack; /* what struct g of Go's runtime begins with (runtime2.go) */
	__u64 at;

	*goroutine = usdt_reg(ctx->regs, USDT_TARGET(GOROUTINE_WORD));
	at = usdt_reg(ctx->regs, USDT_TARGET(STACK_WORD));
	if (bpf_probe_read_user(&stack, sizeof(stack), (const void *)*goroutine))
		return false;
	*depth = stack.high - at;
	return at >= stack.low && at < stack.high;
#endif
}

#endif /* USDT_BPF_SLOTS_H */
