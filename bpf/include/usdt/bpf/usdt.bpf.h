/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Reading a probe's arguments in a BPF program.
 *
 *     #include <usdt/bpf/usdt.bpf.h>
 *
 *     USDT_PROGRAM(on_query)
 *     {
 *             __u64 sql;
 *             if (usdt_arg(ctx, 0, &sql))
 *                     return 0;       // unreadable here: a negative errno, never a silent 0
 *             ...
 *     }
 *
 * USDT_PROGRAM looks the site's spec up once; the calls on `ctx` are inlined and look nothing up. User space sizes and
 * fills the table (usdt::attach), so there is no limit on sites, distinct specs or arguments to tune here.
 * Needs kernel 5.15: bpf_get_attach_cookie (7adfc6c9b315). */
#ifndef USDT_BPF_H
#define USDT_BPF_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "spec.h"

/* Longest argument list of the plan; a constant to the verifier. */
const volatile __u32 usdt_max_args __attribute__((weak)) = 12;

/* Spec table: the loader sets max_entries and value_size from the plan. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct usdt_spec) + 12 * sizeof(struct usdt_arg_spec));
} usdt_specs SEC(".maps") __attribute__((weak));

/* One hit: the registers at the site, and what its spec says about them. */
struct usdt_ctx {
	void *regs; /* struct pt_regs of the uprobe */
	const struct usdt_spec *spec;
	__u64 cookie; /* the attach cookie */
};

/* Errors of the calls below, as in errno.h, which BPF programs cannot include portably. */
enum {
	USDT_ENOENT = 2,
	USDT_EFAULT = 14,
	USDT_EOPNOTSUPP = 95,
};

#include "thread.h"

/* The instruction pointer's word in pt_regs, and which words hold general registers (arch/ has the same tables). */
#if defined(__TARGET_ARCH_x86)
#define USDT_IP_WORD 16
#define USDT_FOR_EACH_REG(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(16) X(19)
#elif defined(__TARGET_ARCH_arm64)
#define USDT_IP_WORD 32
/* clang-format off */
#define USDT_FOR_EACH_REG(X)                                                                           \
	X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)    \
	X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31) X(32)
/* clang-format on */
#else
#error "define __TARGET_ARCH_x86 or __TARGET_ARCH_arm64"
#endif

/* One load with a constant offset. In assembler, because clang would merge the cases of a switch into a load at a
 * variable offset from the context, which the verifier refuses ("dereference of modified ctx ptr"). */
#define USDT_LOAD_WORD(dst, regs, word) asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(dst) : "r"(regs), "i"((word)*8))

static __always_inline __u64 usdt_reg(void *regs, __u8 word)
{
	__u64 value = 0;

	switch (word) {
#define USDT_CASE(n)                            \
	case n:                                 \
		USDT_LOAD_WORD(value, regs, n); \
		break;
		USDT_FOR_EACH_REG(USDT_CASE)
#undef USDT_CASE
	}
	return value;
}

/* The value one spec describes, extended to 64 bits by its sign; floats as their bits. The two registers are picked at
 * one place each: every further one would cost the verifier, and so the start of a trace, as much again. */
static __always_inline int usdt_read(void *regs, const struct usdt_arg_spec *spec, __u64 *value)
{
	/* 1 to 8 in a form that every verifier since 5.15 can see; the planner writes no other. */
	__u32 size = ((spec->size - 1) & 7) + 1, spare = 64 - 8 * size;
	__u64 base = 0, index = 0, address = spec->value, bits = 0, thread = 0;
	__u8 kind = spec->kind, flags = spec->flags;

	*value = 0;
	if (kind == USDT_ARG_CONST) {
		*value = spec->value;
		return 0;
	}
	if (kind != USDT_ARG_REG && kind != USDT_ARG_MEM && kind != USDT_ARG_ADDR)
		return -USDT_EOPNOTSUPP;
	if (spec->reg != USDT_REG_NONE)
		base = usdt_reg(regs, spec->reg);
	if (spec->index != USDT_REG_NONE)
		index = usdt_reg(regs, spec->index);

	if (kind == USDT_ARG_REG) {
		bits = base >> (spec->shift & 63);
		if (flags & USDT_ARG_PAIR)
			bits = (__u32)bits | index << 32;
	} else {
		if (flags & USDT_ARG_IP) {
			USDT_LOAD_WORD(bits, regs, USDT_IP_WORD);
			address += bits;
		}
		if (flags & USDT_ARG_INDEX_U32)
			index = (__u32)index;
		if (flags & USDT_ARG_INDEX_S32)
			index = (__s64)(__s32)index;
		if (usdt_thread_args && flags & USDT_ARG_THREAD) {
			int error = usdt_thread_base(&thread, flags & USDT_ARG_ADDR32);

			if (error)
				return error;
		}
		address += base + (index << (spec->shift & 7)) + thread;
		if (flags & USDT_ARG_ADDR32)
			address = (__u32)address;
		bits = address;
		if (kind == USDT_ARG_MEM) {
			bits = 0;
			/* Exactly `size` bytes: the next one may be on an unmapped page. */
			if (bpf_probe_read_user(&bits, size, (const void *)address))
				return -USDT_EFAULT;
		}
	}
	*value = flags & USDT_ARG_SIGNED ? (__u64)((__s64)(bits << spare) >> spare) : bits << spare >> spare;
	return 0;
}

static __always_inline struct usdt_ctx usdt_context(void *regs)
{
	struct usdt_ctx ctx = {.regs = regs, .cookie = bpf_get_attach_cookie(regs)};
	__u32 key = USDT_COOKIE_SPEC(ctx.cookie);

	ctx.spec = (const struct usdt_spec *)bpf_map_lookup_elem(&usdt_specs, &key);
	return ctx;
}

/* Number of arguments of this site. */
static __always_inline __u32 usdt_arg_cnt(const struct usdt_ctx *ctx)
{
	return ctx->spec ? ctx->spec->arg_cnt : 0;
}

static __always_inline const struct usdt_arg_spec *usdt_arg_at(const struct usdt_ctx *ctx, __u32 n)
{
	if (!ctx->spec || n >= usdt_max_args || n >= ctx->spec->arg_cnt)
		return 0;
	return &ctx->spec->args[n];
}

/* Argument `n` (from 0) into *value. 0, or: -ENOENT no such argument at this site, -EFAULT its memory cannot be read
 * now, -EOPNOTSUPP its operand is unreadable (usdt-list says why), -ENODATA it is thread-local and this kernel does not
 * say where threads keep theirs. *value is 0 on error. */
static __always_inline int usdt_arg(const struct usdt_ctx *ctx, __u32 n, __u64 *value)
{
	const struct usdt_arg_spec *spec = usdt_arg_at(ctx, n);

	*value = 0;
	return spec ? usdt_read(ctx->regs, spec, value) : -USDT_ENOENT;
}

/* Size of argument `n` in bytes; negative: signed, as the note writes it. 0: no such argument. */
static __always_inline int usdt_arg_size(const struct usdt_ctx *ctx, __u32 n)
{
	const struct usdt_arg_spec *spec = usdt_arg_at(ctx, n);

	if (!spec)
		return 0;
	return spec->flags & USDT_ARG_SIGNED ? -(int)spec->size : (int)spec->size;
}

/* The application's cookie (PlanOptions::user_cookie). */
static __always_inline __u64 usdt_cookie(const struct usdt_ctx *ctx)
{
	return ctx->spec ? ctx->spec->user_cookie : 0;
}

/* The plan's number of this site. */
static __always_inline __u32 usdt_site(const struct usdt_ctx *ctx)
{
	return USDT_COOKIE_SITE(ctx->cookie);
}

/* A program for USDT sites; the body sees `const struct usdt_ctx *ctx`. */
#define USDT_PROGRAM(name)                                                 \
	static __always_inline int name##_hit(const struct usdt_ctx *ctx); \
	SEC("uprobe")                                                      \
	int name(void *regs)                                               \
	{                                                                  \
		struct usdt_ctx ctx = usdt_context(regs);                  \
		return name##_hit(&ctx);                                   \
	}                                                                  \
	static __always_inline int name##_hit(const struct usdt_ctx *ctx)

#endif /* USDT_BPF_H */
