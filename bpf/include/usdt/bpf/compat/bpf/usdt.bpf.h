/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* libbpf's <bpf/usdt.bpf.h> on our carriers: with this directory (usdt/bpf/compat) before libbpf's in the include path,
 * a program written against that header compiles unchanged and is attached by usdt::attach.
 *
 * The functions are those of libbpf 1.8, and so are their answers: -ESRCH where the hit has no spec, -ENOENT beyond the
 * last argument, -EFAULT for memory that cannot be read, -EINVAL for an operand that cannot. What differs:
 *   - there are as many specs and arguments as the plan has: BPF_USDT_MAX_SPEC_CNT and BPF_USDT_MAX_IP_CNT mean nothing
 *   - memory is read with the argument's own size, not always 8 bytes, so that a value at the end of a mapping is read
 *   - operands libbpf does not know (usdt-list shows them) have values
 *   - __bpf_usdt_specs, __bpf_usdt_spec_id and their like, which libbpf calls internal, are not there; names that begin
 *     with usdt_ and USDT_ are taken
 *
 * Programs to be written anew have better: USDT_PROG of usdt/bpf/usdt.bpf.h. */
#ifndef __USDT_BPF_H__ /* libbpf's: whichever comes first is the one */
#define __USDT_BPF_H__

/* These programs are for USDT sites; the loader refuses to attach them to kernel functions (usdt_of_files_only). */
#define USDT_SITES_ONLY
#include "../../usdt.bpf.h"

#include <bpf/bpf_tracing.h>
#include <linux/errno.h>

const volatile __u8 usdt_of_files_only __attribute__((weak)) = 1;

/* Programs may ask for it, in #if or as the length of their arrays. */
#define BPF_USDT_MAX_ARG_CNT 12

struct pt_regs;

/* Stack is scarce (512 bytes with that of the callers), so that nothing here keeps windows, which take 128:
 * neighbouring operands are read one by one. */
static __always_inline struct usdt_ctx usdt_compat_context(struct pt_regs *regs)
{
	return usdt_context(regs, (void *)0, false);
}

/* Whether the hit has a spec. */
static __always_inline bool usdt_compat_has_spec(const struct usdt_ctx *ctx)
{
	return usdt_is_packed(ctx) || ctx->spec;
}

/* Argument `n`, with the error that libbpf gives; the value is 0 on error. */
static __always_inline int usdt_compat_arg(const struct usdt_ctx *ctx, __u32 n, __u64 *bits)
{
	struct usdt_arg_spec spec;
	int error;

	*bits = 0;
	if (usdt_is_packed(ctx)) {
		error = usdt_arg_bits(ctx, n, bits);
	} else {
		if (!ctx->spec)
			return -ESRCH;
		if (!usdt_stored_spec(ctx, n, &spec))
			return -ENOENT;
		spec.window = 0;
		error = usdt_read(ctx, &spec, bits);
	}
	return error == -USDT_EOPNOTSUPP ? -EINVAL : error;
}

/* The number of arguments of this site, or -ESRCH. */
__weak __hidden int bpf_usdt_arg_cnt(struct pt_regs *ctx)
{
	struct usdt_ctx hit = usdt_compat_context(ctx);

	return usdt_compat_has_spec(&hit) ? (int)usdt_arg_cnt(&hit) : -ESRCH;
}

/* The size of argument `arg_num`, counted from 0, in bytes; 0 if its note says neither 1, 2, 4 nor 8. Or -ESRCH,
 * -ENOENT. */
__weak __hidden int bpf_usdt_arg_size(struct pt_regs *ctx, __u64 arg_num)
{
	struct usdt_ctx hit = usdt_compat_context(ctx);
	struct usdt_arg_spec spec;

	if (!usdt_compat_has_spec(&hit))
		return -ESRCH;
	if (arg_num >= USDT_MAX_ARGS || !usdt_find_arg(&hit, (__u32)arg_num, &spec))
		return -ENOENT;
	return spec.size;
}

/* Reads argument `arg_num`, counted from 0, into *res, extended to 64 bits by its own sign; on error *res is 0. */
__weak __hidden int bpf_usdt_arg(struct pt_regs *ctx, __u64 arg_num, long *res)
{
	struct usdt_ctx hit = usdt_compat_context(ctx);
	__u64 bits;
	int error;

	error = usdt_compat_arg(&hit, arg_num < USDT_MAX_ARGS ? (__u32)arg_num : USDT_MAX_ARGS, &bits);
	*res = (long)bits;
	return error;
}

/* The application's cookie (PlanOptions::user_cookie); 0 where the hit has no spec. */
__weak __hidden long bpf_usdt_cookie(struct pt_regs *ctx)
{
	struct usdt_ctx hit = usdt_compat_context(ctx);

	return (long)usdt_cookie(&hit);
}

/* The first `count` arguments; those that cannot be read are 0. */
static __always_inline void usdt_compat_values(struct pt_regs *regs, __u64 *values, __u32 count)
{
	struct usdt_ctx hit = usdt_compat_context(regs);

	for (__u32 i = 0; i < count; i++)
		usdt_compat_arg(&hit, i, &values[i]);
}

/* SEC("usdt") int BPF_USDT(name, type arg, ...): a program with the first arguments of the site, at most 12, as typed
 * parameters beside `ctx`. As with libbpf the body runs in any case, and an argument that could not be read is 0 there;
 * USDT_PROG does not do that. The spec is looked up once for all of them. */
#define BPF_USDT(name, params...)                                                         \
	name(struct pt_regs *ctx);                                                        \
	static __always_inline typeof(name(0)) ____##name(struct pt_regs *ctx, ##params); \
	typeof(name(0)) name(struct pt_regs *ctx)                                         \
	{                                                                                 \
		__u64 values[12];                                                         \
                                                                                          \
		usdt_keep_task_stack(ctx);                                                \
                                                                                          \
		usdt_compat_values(ctx, values, USDT_COUNT(params));                      \
		_Pragma("GCC diagnostic push");                                           \
		_Pragma("GCC diagnostic ignored \"-Wint-conversion\"");                   \
		return ____##name(ctx USDT_VALUES(USDT_COUNT(params), values));           \
		_Pragma("GCC diagnostic pop");                                            \
	}                                                                                 \
	static __always_inline typeof(name(0)) ____##name(struct pt_regs *ctx, ##params)

#endif /* __USDT_BPF_H__ */
