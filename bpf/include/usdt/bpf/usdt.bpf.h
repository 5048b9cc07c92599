/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Reading a probe's arguments in a BPF program.
 *
 *     #include <usdt/bpf/usdt.bpf.h>
 *
 *     USDT_PROG(on_query, const char *sql, int rows)   // runs only if both arguments could be read
 *     {
 *             ...
 *     }
 *
 *     USDT_PROGRAM(on_any)                             // or reads the arguments one by one
 *     {
 *             __u32 rows;
 *             int error = usdt_arg(ctx, 1, &rows);     // 0, or the reason why there is no value
 *             ...
 *     }
 *
 * One source serves all carriers of specs (spec.h): user space picks one when it loads the program (usdt::attach()),
 * creates and fills the maps that it needs, and the verifier removes the code of the others. There is no limit to tune:
 * not of sites, nor of specs, nor of arguments. It takes clang 14 or newer, with or without vmlinux.h. Define the
 * kernel's machine before the include: __TARGET_ARCH_x86 (64-bit), __TARGET_ARCH_i386,
 * __TARGET_ARCH_arm64 or __TARGET_ARCH_riscv (64-bit). */
#ifndef USDT_BPF_H
#define USDT_BPF_H

#include "carriers.h"
#include "filter.h"
#include "patched.h"
#include "value.h"

/* How many hits did not run the body of a USDT_PROG, because an argument could not be read. */
__u64 usdt_unread_hits __attribute__((weak)) = 0;

/* A whole register, or its lowest bytes: most arguments are, and have no need of usdt_read(). */
static __always_inline int usdt_read_reg(const struct usdt_ctx *ctx, __u8 reg, __u32 size, bool is_signed, __u64 *bits)
{
	*bits = usdt_extend(usdt_reg(ctx->regs, reg), size, is_signed);
	return 0;
}

/* usdt_arg() without a type: the value of argument `n`, extended to 64 bits by its own sign; of floats their bits.
 * Slots are read in one place only, in usdt_read(), to keep this short: in a loop over arguments their numbers are
 * constants only if clang unrolls it, which clang 14 does up to a size of 16,384. Twelve arguments come to 15,800. */
static __always_inline int usdt_arg_bits(const struct usdt_ctx *ctx, __u32 n, __u64 *bits)
{
	struct usdt_arg_spec spec;
	int error, first = -1;
	__u32 failed;
	__u64 rest;

	*bits = 0;
	if (__builtin_constant_p(n) && n < USDT_LINK_ARGS && USDT_CAN_PATCH) {
		const int done = usdt_patched_arg(ctx, n, bits);

		if (done <= 0)
			return done;
	}
	if (usdt_is_packed(ctx)) {
		if (!usdt_find_packed(ctx, n, &rest))
			return -USDT_ENOENT;
		if ((usdt_program()->packed_regs || !(rest & 1)) && !usdt_in_slots(ctx))
			return usdt_read_reg(ctx, usdt_packed_reg(rest >> 4, USDT_TARGET(REG_BITS)),
					     1u << ((rest >> 1) & 3), rest & 8, bits);
		spec = usdt_unpack(ctx, rest);
	} else if (!usdt_stored_spec(ctx, n, &spec)) {
		return -USDT_ENOENT;
	}
	/* Most arguments are whole registers, and need nothing of what follows. */
	if (spec.kind == USDT_ARG_REG && !spec.shift && !(spec.flags & ~USDT_ARG_SIGNED) && !usdt_calls() &&
	    !usdt_in_slots(ctx))
		return usdt_read_reg(ctx, spec.reg, ((spec.size - 1) & 7) + 1, spec.flags & USDT_ARG_SIGNED, bits);
	/* If no value has steps, neither they nor the error are asked about: each answer would be a path of its own to
	 * the verifier. */
	if (usdt_program()->max_steps)
		first = usdt_split_steps(&spec);
	error = usdt_read(ctx, &spec, bits);
	if (usdt_program()->max_steps && !error && first >= 0) {
		error = usdt_follow(ctx, first, bits, &failed);
		if (error)
			*bits = 0;
	}
	return error;
}

/* Whether a value fits a variable of `size` bytes, a signed or an unsigned one. */
static __always_inline bool usdt_fits(__u64 bits, __u32 size)
{
	const __u32 spare = 64 - 8 * size;

	return bits << spare >> spare == bits || (__u64)((__s64)(bits << spare) >> spare) == bits;
}

/* Reads argument `n`, counted from 0, into *p, a variable of any integer or pointer type; of a float a __u64 takes the
 * bits (usdt/bits.hpp turns them back). 0, or, with *p set to 0:
 *     -ENOENT       the site has no such argument
 *     -EFAULT       its memory cannot be read now
 *     -EOPNOTSUPP   its operand is unreadable; usdt-list says why
 *     -ENODATA      it is not there at this end of a call, or it is thread-local, and the kernel has no BTF that says
 *                   where threads keep theirs
 *     -ERANGE       the value does not fit the variable */
#define usdt_arg(ctx, n, p)                                               \
	({                                                                \
		__u64 usdt_bits_;                                         \
		int usdt_error_ = usdt_arg_bits(ctx, n, &usdt_bits_);     \
		if (!usdt_error_ && !usdt_fits(usdt_bits_, sizeof(*(p)))) \
			usdt_error_ = -USDT_ERANGE;                       \
		usdt_bits_ = usdt_error_ ? 0 : usdt_bits_;                \
		*(p) = (typeof(*(p)))usdt_opaque(ctx, usdt_bits_);        \
		usdt_error_;                                              \
	})

/* Copies the text that argument `n` points to, and whose length in bytes is argument `by`. It need not end in a NUL,
 * and nothing behind it is read. How many bytes were copied, at most `size`, which is a constant; no NUL is added. Or a
 * negative errno: those of usdt_arg(); -ERANGE, the length is below 0. */
static __always_inline long usdt_str_by(const struct usdt_ctx *ctx, __u32 n, __u32 by, char *to, __u32 size)
{
	__u64 address, length;
	long error = usdt_arg_bits(ctx, n, &address);

	if (!error)
		error = usdt_arg_bits(ctx, by, &length);
	if (error)
		return error;
	if ((__s64)length < 0)
		return -USDT_ERANGE;
	if (length > size)
		length = size;
	asm volatile(""
		     : "+r"(length)); /* else clang checks a copy of it, and the verifier knows no bound of this one */
	if (length == 0 || length > size)
		return 0;
	return usdt_copy_bytes(ctx, to, length, address) ? -USDT_EFAULT : (long)length;
}

/* Copies the text that argument `n` points to, up to its NUL. How many bytes were written with the NUL: a text that is
 * too long is cut, so that they are `size`. Or a negative errno. */
static __always_inline long usdt_str(const struct usdt_ctx *ctx, __u32 n, char *to, __u32 size)
{
	__u64 address;
	long length = usdt_arg_bits(ctx, n, &address);
	char touched;

	if (length)
		return length;
	length = usdt_copy_text(ctx, to, size, address);
	if (!ctx->sleepable || length >= 0)
		return length;
	/* Wait for the pages that the text may be on. The second one may not be there at all: the text may end before.
	 */
	if (bpf_copy_from_user(&touched, 1, (const void *)address))
		return -USDT_EFAULT;
	length = usdt_copy_text(ctx, to, size, address);
	if (length >= 0 || bpf_copy_from_user(&touched, 1, (const void *)((address | (USDT_PAGE - 1)) + 1)))
		return length;
	return usdt_copy_text(ctx, to, size, address);
}

/* The size of argument `n` in bytes; it is negative if the argument is signed, as notes write it. 0: the site has no
 * such argument. */
static __always_inline int usdt_arg_size(const struct usdt_ctx *ctx, __u32 n)
{
	struct usdt_arg_spec spec;

	if (!usdt_find_arg(ctx, n, &spec))
		return 0;
	return spec.flags & USDT_ARG_SIGNED ? -(int)spec.size : (int)spec.size;
}

/* Returns where argument `n` is (enum usdt_arg_kind); for a member, where the way to it begins. Or -ENOENT. */
static __always_inline int usdt_arg_kind(const struct usdt_ctx *ctx, __u32 n)
{
	struct usdt_arg_spec spec;

	return usdt_find_arg(ctx, n, &spec) ? USDT_ARG_KIND(spec.kind) : -USDT_ENOENT;
}

/* Whether this hit is the end of a call. A program for both ends of calls runs twice for each. */
static __always_inline bool usdt_is_return(const struct usdt_ctx *ctx)
{
	return ctx->returns;
}

/* The application's cookie (PlanOptions::user_cookie and user_cookie_of); 0: it set none. */
static __always_inline __u64 usdt_cookie(const struct usdt_ctx *ctx)
{
	const struct usdt_spec *spec;

	if (usdt_is_packed(ctx))
		return usdt_program()->user_cookie;
	spec = usdt_spec_of(ctx->spec);
	return spec ? spec->user_cookie : 0;
}

/* The number of this site in the plan; USDT_NO_SITE where packed cookies have none (CarrierOptions::site_numbers). */
static __always_inline __u32 usdt_site(const struct usdt_ctx *ctx)
{
	__u32 bits;

	if (usdt_program()->one_site)
		return 0;
	if (usdt_carried_by(ctx, USDT_CARRIER_LINK))
		return USDT_COOKIE_SITE(usdt_find_cookie(ctx));
	if (!usdt_is_packed(ctx))
		return USDT_COOKIE_SITE(ctx->cookie);
	bits = usdt_program()->site_bits;
	return bits > 30 ? USDT_NO_SITE : USDT_PACKED_SITE(ctx->cookie, bits);
}

/* The program itself: makes the context of the hit, and calls the body that follows. */
#define USDT_PROGRAM_IN(section, name, may_sleep)                          \
	static __always_inline int name##_hit(const struct usdt_ctx *ctx); \
	SEC(section)                                                       \
	int name(void *regs)                                               \
	{                                                                  \
		struct usdt_window window;                                 \
		struct usdt_ctx ctx;                                       \
                                                                           \
		usdt_keep_task_stack(regs);                                \
		if (!usdt_in_scope())                                      \
			return 0;                                          \
		ctx = usdt_context(regs, &window, may_sleep);              \
		return name##_hit(&ctx);                                   \
	}                                                                  \
	static __always_inline int name##_hit(const struct usdt_ctx *ctx)

/* USDT_PROGRAM(name) { ... }: a program for USDT sites. Its body has `const struct usdt_ctx *ctx`. */
#define USDT_PROGRAM(name) USDT_PROGRAM_IN("uprobe", name, false)
/* USDT_PROGRAM(name) as a sleepable program (Linux 6.0): it waits for memory that is paged out. */
#define USDT_PROGRAM_SLEEPABLE(name) USDT_PROGRAM_IN("uprobe.s", name, true)

/* USDT_PROG(name, type arg, ...) { ... }: a program that has the first arguments of the site as typed parameters, at
 * most
 * 12. Its body runs only if all of them could be read; other hits are counted in usdt_unread_hits. A parameter that is
 * narrower than its argument takes the lowest bits, as in any call in C, where usdt_arg() would say -ERANGE. The body
 * has `ctx`, too. */
#define USDT_PROG(name, params...) USDT_PROG_IN("uprobe", name, false, ##params)
#define USDT_PROG_SLEEPABLE(name, params...) USDT_PROG_IN("uprobe.s", name, true, ##params)

#define USDT_NTH(ctx, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, n, ...) n
#define USDT_COUNT(params...) USDT_NTH(ctx, ##params, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define USDT_VALUES_0(v)
#define USDT_VALUES_1(v) , v[0]
#define USDT_VALUES_2(v) USDT_VALUES_1(v), v[1]
#define USDT_VALUES_3(v) USDT_VALUES_2(v), v[2]
#define USDT_VALUES_4(v) USDT_VALUES_3(v), v[3]
#define USDT_VALUES_5(v) USDT_VALUES_4(v), v[4]
#define USDT_VALUES_6(v) USDT_VALUES_5(v), v[5]
#define USDT_VALUES_7(v) USDT_VALUES_6(v), v[6]
#define USDT_VALUES_8(v) USDT_VALUES_7(v), v[7]
#define USDT_VALUES_9(v) USDT_VALUES_8(v), v[8]
#define USDT_VALUES_10(v) USDT_VALUES_9(v), v[9]
#define USDT_VALUES_11(v) USDT_VALUES_10(v), v[10]
#define USDT_VALUES_12(v) USDT_VALUES_11(v), v[11]
/* Whether one of the first n cannot be read. Written out, so that the number of each argument is a constant, which
 * per-link programs need to have it in their instructions: a loop that a compiler finds too long to unroll stays one.
 */
#define USDT_READS_0(ctx, v) ((void)(v), 0)
#define USDT_READS_1(ctx, v) USDT_READS_0(ctx, v) || usdt_arg_bits(ctx, 0, &v[0])
#define USDT_READS_2(ctx, v) USDT_READS_1(ctx, v) || usdt_arg_bits(ctx, 1, &v[1])
#define USDT_READS_3(ctx, v) USDT_READS_2(ctx, v) || usdt_arg_bits(ctx, 2, &v[2])
#define USDT_READS_4(ctx, v) USDT_READS_3(ctx, v) || usdt_arg_bits(ctx, 3, &v[3])
#define USDT_READS_5(ctx, v) USDT_READS_4(ctx, v) || usdt_arg_bits(ctx, 4, &v[4])
#define USDT_READS_6(ctx, v) USDT_READS_5(ctx, v) || usdt_arg_bits(ctx, 5, &v[5])
#define USDT_READS_7(ctx, v) USDT_READS_6(ctx, v) || usdt_arg_bits(ctx, 6, &v[6])
#define USDT_READS_8(ctx, v) USDT_READS_7(ctx, v) || usdt_arg_bits(ctx, 7, &v[7])
#define USDT_READS_9(ctx, v) USDT_READS_8(ctx, v) || usdt_arg_bits(ctx, 8, &v[8])
#define USDT_READS_10(ctx, v) USDT_READS_9(ctx, v) || usdt_arg_bits(ctx, 9, &v[9])
#define USDT_READS_11(ctx, v) USDT_READS_10(ctx, v) || usdt_arg_bits(ctx, 10, &v[10])
#define USDT_READS_12(ctx, v) USDT_READS_11(ctx, v) || usdt_arg_bits(ctx, 11, &v[11])
#define USDT_JOIN(a, b) a##b
#define USDT_VALUES(n, v) USDT_JOIN(USDT_VALUES_, n)(v)
#define USDT_READS(n, ctx, v) USDT_JOIN(USDT_READS_, n)(ctx, v)

#define USDT_PROG_IN(section, name, may_sleep, params...)                             \
	static __always_inline int name##_body(const struct usdt_ctx *ctx, ##params); \
	USDT_PROGRAM_IN(section, name, may_sleep)                                     \
	{                                                                             \
		__u64 values[12];                                                     \
                                                                                      \
		if (USDT_READS(USDT_COUNT(params), ctx, values)) {                    \
			__sync_fetch_and_add(&usdt_unread_hits, 1);                   \
			return 0;                                                     \
		}                                                                     \
		_Pragma("GCC diagnostic push");                                       \
		_Pragma("GCC diagnostic ignored \"-Wint-conversion\"");               \
		return name##_body(ctx USDT_VALUES(USDT_COUNT(params), values));      \
		_Pragma("GCC diagnostic pop");                                        \
	}                                                                             \
	static __always_inline int name##_body(const struct usdt_ctx *ctx, ##params)

#endif /* USDT_BPF_H */
