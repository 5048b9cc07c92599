/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* From an argument's spec to its value: registers of the hit, memory of the process. For BPF programs; included by
 * usdt.bpf.h. */
#ifndef USDT_BPF_READ_H
#define USDT_BPF_READ_H

#ifndef __VMLINUX_H__
#include <linux/bpf.h>
#include <stdbool.h>
#endif

#include <bpf/bpf_helpers.h>

#include "cookie.h"

/* Errors, as in errno.h, which BPF programs cannot include portably. */
enum {
	USDT_ENOENT = 2,
	USDT_EFAULT = 14,
	USDT_ERANGE = 34,
	USDT_ENODATA = 61, /* not known at this end of a call, or by this kernel */
	USDT_EOPNOTSUPP = 95,
};

#include "thread.h"

/* 0, which the verifier cannot know. A value that is this or that constant, by the path taken, would make it explore
 * what follows once for each; with this mixed in (usdt_forget) it does so once. */
__u64 usdt_zero __attribute__((weak)) = 0;

/* Some spec of the plan has windows. */
const volatile __u8 usdt_windows __attribute__((weak)) = 0;
/* What was read last for neighbouring operands. */
struct usdt_window {
	__u64 number; /* of the window in `words`, 0: none */
	__u64 failed; /* bit N: window N could not be read, its operands may be */
	__u64 words[USDT_WINDOW_BYTES / 8 + 1];
};

/* What the program is given (enum usdt_source). */
const volatile __u32 usdt_source __attribute__((weak)) = USDT_SOURCE_USER;
/* The ends of a call it runs at (enum usdt_moment). */
const volatile __u32 usdt_moment __attribute__((weak)) = USDT_AT_ENTRY;
/* Its sites are whole calls: it runs at both ends, as a session or as two programs. */
const volatile __u8 usdt_calls __attribute__((weak)) = 0;
/* Programs that are for USDT sites alone define USDT_SITES_ONLY: what the others need costs them stack. */
#ifdef USDT_SITES_ONLY
#define USDT_SOURCE USDT_SOURCE_USER
#define USDT_CALLS 0
#else
#define USDT_SOURCE usdt_source
#define USDT_CALLS usdt_calls
#endif

/* One hit: the registers at the site, and what its spec says about them. */
struct usdt_ctx {
	void *regs;		      /* struct pt_regs, or the slots of the others (enum usdt_source) */
	const struct usdt_spec *spec; /* NULL: packed in the cookie, or none */
	const struct usdt_spec *vary; /* per-link programs: what differs between their sites */
	__u64 cookie;
	__u64 carriers; /* usdt_carriers */
	struct usdt_window *window;
	__u32 source; /* usdt_source */
	bool sleepable;
	bool returns; /* at the end of a call */
};

/* X(pt_regs word as specs number it, byte offset in the kernel's struct) for each general register and the instruction
 * pointer; arch/ has the same tables. */
#if defined(__TARGET_ARCH_x86)
#define USDT_REG_BITS USDT_REG_BITS_X86
#define USDT_IP_OFFSET 128
#define USDT_LOWEST_KERNEL_ADDRESS (1ull << 63)
#define USDT_FRAME_OFFSET 152 /* of the stack pointer */
#define USDT_RETURN_POPS 8    /* bytes: the return address */
#define USDT_KPROBE_IP 1      /* kprobes leave the instruction pointer behind the byte of their int3 */
#define USDT_LOAD "u64"
/* clang-format off */
#define USDT_FOR_EACH_REG(X)                                                                                    \
	X(0, 0) X(1, 8) X(2, 16) X(3, 24) X(4, 32) X(5, 40) X(6, 48) X(7, 56) X(8, 64) X(9, 72) X(10, 80)       \
	X(11, 88) X(12, 96) X(13, 104) X(14, 112) X(16, 128) X(19, 152)
#elif defined(__TARGET_ARCH_i386)
/* A 32-bit kernel: arch/x86/include/asm/ptrace.h. Specs number its registers as those of the 64-bit kernel. */
#define USDT_REG_BITS USDT_REG_BITS_X86
#define USDT_IP_OFFSET 48
#define USDT_LOWEST_KERNEL_ADDRESS 0xc0000000u /* PAGE_OFFSET with VMSPLIT_3G */
#define USDT_FRAME_OFFSET 60
#define USDT_RETURN_POPS 4
#define USDT_KPROBE_IP 1
#define USDT_LOAD "u32"
#define USDT_FOR_EACH_REG(X)                                                                                    \
	X(4, 20) X(5, 0) X(10, 24) X(11, 4) X(12, 8) X(13, 12) X(14, 16) X(16, 48) X(19, 60)
#elif defined(__TARGET_ARCH_arm64)
#define USDT_REG_BITS USDT_REG_BITS_ARM64
#define USDT_IP_OFFSET 256
#define USDT_LOWEST_KERNEL_ADDRESS (1ull << 63)
/* Of x29, the caller's frame: what kprobe_multi says of the stack pointer at a return is anything (return_to_handler in
 * arch/arm64/kernel/entry-ftrace.S, since 6.14, saves x0 to x7 and x29 alone). */
#define USDT_FRAME_OFFSET 232
#define USDT_RETURN_POPS 0
#define USDT_KPROBE_IP 0
#define USDT_LOAD "u64"
#define USDT_FOR_EACH_REG(X)                                                                                    \
	X(0, 0) X(1, 8) X(2, 16) X(3, 24) X(4, 32) X(5, 40) X(6, 48) X(7, 56) X(8, 64) X(9, 72) X(10, 80)       \
	X(11, 88) X(12, 96) X(13, 104) X(14, 112) X(15, 120) X(16, 128) X(17, 136) X(18, 144) X(19, 152)        \
	X(20, 160) X(21, 168) X(22, 176) X(23, 184) X(24, 192) X(25, 200) X(26, 208) X(27, 216) X(28, 224)      \
	X(29, 232) X(30, 240) X(31, 248) X(32, 256)
/* clang-format on */
#else
#error "define __TARGET_ARCH_x86, __TARGET_ARCH_i386 or __TARGET_ARCH_arm64"
#endif

/* One load with a constant offset. In assembler, because clang would merge the cases of a switch into a load at a
 * variable offset from the context, which the verifier refuses ("dereference of modified ctx ptr"). */
#define USDT_LOAD_REG(dst, regs, offset) \
	asm volatile("%0 = *(" USDT_LOAD " *)(%1 + %2)" : "=r"(dst) : "r"(regs), "i"(offset))

/* Programs with a spec of their own are the exception: there, all follows from what is known. */
static __always_inline __u64 usdt_forget(const struct usdt_ctx *ctx, __u64 value)
{
	if (ctx->carriers & USDT_CARRIER_BIT(USDT_CARRIER_LINK))
		return value;
	return value ^ *(volatile __u64 *)&usdt_zero;
}

static __always_inline __u64 usdt_reg(void *regs, __u8 word)
{
	__u64 value = 0;

	switch (word) {
#define USDT_CASE(number, offset)                   \
	case number:                                \
		USDT_LOAD_REG(value, regs, offset); \
		break;
		USDT_FOR_EACH_REG(USDT_CASE)
#undef USDT_CASE
	}
	return value;
}

static __always_inline __u64 usdt_ip(void *regs)
{
	__u64 ip;

	USDT_LOAD_REG(ip, regs, USDT_IP_OFFSET);
	return ip;
}

/* The lowest `size` bytes of a register or of memory as a number of 64 bits. */
static __always_inline __u64 usdt_extend(__u64 bits, __u32 size, bool is_signed)
{
	const __u32 spare = 64 - 8 * size;

	return is_signed ? (__u64)((__s64)(bits << spare) >> spare) : bits << spare >> spare;
}

#include "slots.h"

/* The smallest pages there are: larger ones are touched more than once. */
#define USDT_PAGE 4096ull

/* Exactly `size` bytes: the next one may be on an unmapped page. A sleepable program waits for pages to come in. */
static __always_inline long usdt_copy(const struct usdt_ctx *ctx, void *to, __u32 size, __u64 address)
{
	if (ctx->source != USDT_SOURCE_USER)
		return bpf_probe_read_kernel(to, size, (const void *)address);
	if (ctx->sleepable)
		return bpf_copy_from_user(to, size, (const void *)address);
	return bpf_probe_read_user(to, size, (const void *)address);
}

static __always_inline void usdt_init_window(const struct usdt_ctx *ctx, struct usdt_window *window)
{
	const __u64 zero = usdt_forget(ctx, 0);

	window->number = zero;
	window->failed = zero;
	for (int i = 0; i < USDT_WINDOW_BYTES / 8 + 1; i++)
		window->words[i] = zero;
}

/* The 8 bytes at `address`, which is within a window of its spec; false if the window cannot be read as a whole. */
static __always_inline bool usdt_read_window(const struct usdt_ctx *ctx, __u8 in, __u64 address, __u64 *bits)
{
	__u64 number = USDT_WINDOW_NUMBER(in), offset = USDT_WINDOW_OFFSET(in);
	__u32 word = offset >> 3, shift = 8 * (offset & 7), size;
	struct usdt_window *window = ctx->window;

	if (window->number != number) {
		if (window->failed & 1ull << number)
			return false;
		size = ((ctx->spec->window_size[number] - 1) & (USDT_WINDOW_BYTES - 1)) + 1;
		/* Operands whose addresses wrap at 2^32 are no neighbours across it. */
		if ((address - offset) >> 32 != (address - offset + size - 1) >> 32)
			return false;
		window->number = usdt_forget(ctx, number);
		if (usdt_copy(ctx, window->words, size, address - offset)) {
			window->number = usdt_forget(ctx, 0);
			window->failed |= 1ull << number;
			return false;
		}
	}
	*bits = window->words[word] >> shift;
	if (shift)
		*bits |= window->words[word + 1] << (64 - shift);
	return true;
}

/* The value one spec describes, extended to 64 bits by its sign; floats as their bits. The two registers are picked at
 * one place each: every further one would cost the verifier, and so the start of a trace, as much again. */
static __always_inline int usdt_read(const struct usdt_ctx *ctx, const struct usdt_arg_spec *spec, __u64 *value)
{
	/* 1 to 8 in a form that every verifier since 5.15 can see; the planner writes no other. */
	__u32 size = ((spec->size - 1) & 7) + 1;
	__u64 base = 0, index = 0, bits = 0;
	__u8 kind = spec->kind, flags = spec->flags;

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
	if (USDT_CALLS && !(flags & USDT_ARG_RESULT) == ctx->returns)
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
		if (flags & USDT_ARG_INDEX_U32)
			index = (__u32)index;
		if (flags & USDT_ARG_INDEX_S32)
			index = (__s64)(__s32)index;
		bits = spec->value + base + (index << (spec->shift & 7));
		if (flags & USDT_ARG_IP)
			bits += usdt_ip(ctx->regs);
		if (usdt_thread_args && flags & USDT_ARG_THREAD) {
			__u64 thread;
			int error = usdt_thread_base(&thread, flags & USDT_ARG_ADDR32);

			if (error)
				return error;
			bits += thread;
		}
		if (flags & USDT_ARG_ADDR32)
			bits = (__u32)bits;
		if (kind == USDT_ARG_MEM) {
			__u64 address = bits;

			if (!usdt_windows || !spec->window || !usdt_read_window(ctx, spec->window, address, &bits)) {
				bits = 0;
				if (usdt_copy(ctx, &bits, size, address))
					return -USDT_EFAULT;
			}
		}
	}
	*value = usdt_extend(bits, size, flags & USDT_ARG_SIGNED);
	return 0;
}

#endif /* USDT_BPF_READ_H */
