/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Reading a probe's arguments in a BPF program.
 *
 *     #include <usdt/bpf/usdt.bpf.h>
 *
 *     USDT_PROG(on_query, const char *sql, int rows)   // runs with true values only
 *     {
 *             ...
 *     }
 *
 *     USDT_PROGRAM(on_any)                             // or takes the arguments one by one
 *     {
 *             __u32 rows;
 *             int error = usdt_arg(ctx, 1, &rows);     // 0, or why there is none: never a silent 0
 *             ...
 *     }
 *
 * The same text serves each carrier of specs (spec.h): user space picks one when it loads the program (usdt::attach),
 * sizes and fills what it needs, and the verifier removes the rest. There is no limit on sites, distinct specs or
 * arguments to tune here. Wants clang >= 14; works with and without vmlinux.h. Define __TARGET_ARCH_x86, _i386 or
 * _arm64. */
#ifndef USDT_BPF_H
#define USDT_BPF_H

#include "carriers.h"
#include "filter.h"
#include "patched.h"
#include "value.h"

/* Hits at which USDT_PROG did not run its body, because an argument could not be read. */
__u64 usdt_unread_hits __attribute__((weak)) = 0;

/* A whole register, which most arguments are, without the detour of usdt_read(). */
static __always_inline int usdt_read_reg(const struct usdt_ctx *ctx, __u8 reg, __u32 size, bool is_signed, __u64 *bits)
{
	*bits = usdt_extend(usdt_reg(ctx->regs, reg), size, is_signed);
	return 0;
}

/* usdt_arg() without a type: the value extended to 64 bits by its own sign, floats as their bits. It has one place for
 * slots, in usdt_read(): clang 14 unrolls a loop over arguments up to a size of 16,384, which twelve of these come to
 * 15,800 of, and only where it does their numbers are constants. */
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
	/* Most are whole registers: past the rest. */
	if (spec.kind == USDT_ARG_REG && !spec.shift && !(spec.flags & ~USDT_ARG_SIGNED) && !usdt_calls() &&
	    !usdt_in_slots(ctx))
		return usdt_read_reg(ctx, spec.reg, ((spec.size - 1) & 7) + 1, spec.flags & USDT_ARG_SIGNED, bits);
	/* Where no value has steps, nothing is asked about them, nor about the error: the verifier goes on from each
	 * answer. */
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

/* Whether a value fits `size` bytes, signed or not. */
static __always_inline bool usdt_fits(__u64 bits, __u32 size)
{
	const __u32 spare = 64 - 8 * size;

	return bits << spare >> spare == bits || (__u64)((__s64)(bits << spare) >> spare) == bits;
}

/* Argument `n` (from 0) into *p, a variable of any integer or pointer type. 0, or: -ENOENT no such argument at this
 * site, -EFAULT its memory cannot be read now, -EOPNOTSUPP its operand is unreadable (usdt-list says why), -ENODATA it
 * is thread-local and this kernel does not say where threads keep theirs, -ERANGE the value does not fit the variable.
 * *p is 0 on error. Floats: a __u64 takes the bits (usdt/bits.hpp turns them back). */
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

/* The text argument `n` points to, whose length is argument `by`: it need not end in a NUL, and nothing behind it is
 * read. Bytes written, at most `size`, a constant; no NUL is added. Or a negative errno: those of usdt_arg(), -ERANGE a
 * length below 0. */
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
	asm volatile("" : "+r"(length)); /* else clang checks a copy of it */
	if (length == 0 || length > size)
		return 0;
	return usdt_copy_bytes(ctx, to, length, address) ? -USDT_EFAULT : (long)length;
}

/* The text argument `n` points to. Bytes written with the NUL (a longer text is cut to `size`), or a negative errno. */
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
	/* Bring in the pages it may be on; one that is not there may be behind its end. */
	if (bpf_copy_from_user(&touched, 1, (const void *)address))
		return -USDT_EFAULT;
	length = usdt_copy_text(ctx, to, size, address);
	if (length >= 0 || bpf_copy_from_user(&touched, 1, (const void *)((address | (USDT_PAGE - 1)) + 1)))
		return length;
	return usdt_copy_text(ctx, to, size, address);
}

/* Size of argument `n` in bytes; negative: signed, as the note writes it. 0: no such argument. */
static __always_inline int usdt_arg_size(const struct usdt_ctx *ctx, __u32 n)
{
	struct usdt_arg_spec spec;

	if (!usdt_find_arg(ctx, n, &spec))
		return 0;
	return spec.flags & USDT_ARG_SIGNED ? -(int)spec.size : (int)spec.size;
}

/* What argument `n` is (enum usdt_arg_kind; of a member, what the way to it begins with), or -ENOENT. */
static __always_inline int usdt_arg_kind(const struct usdt_ctx *ctx, __u32 n)
{
	struct usdt_arg_spec spec;

	return usdt_find_arg(ctx, n, &spec) ? USDT_ARG_KIND(spec.kind) : -USDT_ENOENT;
}

/* Whether this hit is the end of a call of a function; programs at both ends (call) run a second time there. */
static __always_inline bool usdt_is_return(const struct usdt_ctx *ctx)
{
	return ctx->returns;
}

/* The application's cookie (PlanOptions::user_cookie). */
static __always_inline __u64 usdt_cookie(const struct usdt_ctx *ctx)
{
	const struct usdt_spec *spec;

	if (usdt_is_packed(ctx))
		return usdt_program()->user_cookie;
	spec = usdt_spec_of(ctx->spec);
	return spec ? spec->user_cookie : 0;
}

/* The plan's number of this site; USDT_NO_SITE in packed cookies without (CarrierOptions::site_numbers). */
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

/* A program for USDT sites; the body sees `const struct usdt_ctx *ctx`. */
#define USDT_PROGRAM(name) USDT_PROGRAM_IN("uprobe", name, false)
/* The same, and reading memory that is paged out waits for it (kernel >= 6.0). */
#define USDT_PROGRAM_SLEEPABLE(name) USDT_PROGRAM_IN("uprobe.s", name, true)

/* USDT_PROG(name, type arg, ...): a program with the first arguments of the site as typed parameters, at most 12. Its
 * body runs only if all of them could be read; hits where one could not are counted in usdt_unread_hits. A parameter
 * narrower than its argument takes the lowest bits, as in any call; usdt_arg() would say -ERANGE. `ctx` is there as
 * well. */
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
/* Whether one of the first n cannot be read. Written out, since the number of an argument is a constant then, which
 * per-link programs need to find it in their instructions: a loop is left one by compilers that find it too long. */
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
