/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* One hit as a BPF program sees it: errors, the constants it was loaded with, its context, whose hit it is. */
#ifndef USDT_BPF_HIT_H
#define USDT_BPF_HIT_H

#ifndef __VMLINUX_H__
#include <linux/bpf.h>
#include <stdbool.h>
#endif

#include <bpf/bpf_helpers.h>

#include "constants.h"

/* Errors, as in errno.h, which BPF programs cannot include portably. */
enum {
	USDT_ENOENT = 2,
	USDT_EFAULT = 14,
	USDT_EEXIST = 17,
	USDT_ERANGE = 34,
	USDT_ENODATA = 61, /* not known at this end of a call, or by this kernel */
	USDT_EOPNOTSUPP = 95,
};

/* The layout this program was built with: user space refuses to fill in another. */
const volatile __u32 usdt_spec_version __attribute__((weak)) = USDT_SPEC_VERSION;
USDT_CONSTANTS(usdt_program)
USDT_CONSTANTS(usdt_kernel)

struct usdt_window; /* memory.h */

/* One hit: the registers at the site, and what its spec says about them. */
struct usdt_ctx {
	void *regs;			   /* struct pt_regs, or the slots of the others (enum usdt_source) */
	const struct usdt_spec *spec;	   /* NULL: packed in the cookie, or none */
	const struct usdt_spec *site_spec; /* per-link programs: of this site, for what `values_by_site` says */
	__u64 cookie;
	__u64 carriers; /* of usdt_program() */
	struct usdt_window *window;
	__u32 source; /* of usdt_program() */
	bool sleepable;
	bool returns; /* at the end of a call */
};

/* The spec, which may be NULL. Its users' tests come before what they add to it, which verifiers want: without the
 * assembler clang adds once for all of them, before the tests. */
static __always_inline const struct usdt_spec *usdt_spec_of(const struct usdt_spec *spec)
{
	if (spec)
		asm volatile("" : "+r"(spec));
	return spec;
}

/* Programs that are for USDT sites alone define USDT_SITES_ONLY: what the others need costs them stack. */
static __always_inline __u32 usdt_source(void)
{
#ifdef USDT_SITES_ONLY
	return USDT_SOURCE_USER;
#else
	return usdt_program()->source;
#endif
}

static __always_inline bool usdt_calls(void)
{
#ifdef USDT_SITES_ONLY
	return false;
#else
	return usdt_program()->calls;
#endif
}

static __always_inline bool usdt_carried_by(const struct usdt_ctx *ctx, enum usdt_carrier carrier)
{
	return ctx->carriers & USDT_CARRIER_BIT(carrier);
}

static __always_inline bool usdt_is_packed(const struct usdt_ctx *ctx)
{
	return usdt_carried_by(ctx, USDT_CARRIER_COOKIE);
}

static __always_inline bool usdt_in_slots(const struct usdt_ctx *ctx)
{
#ifdef USDT_SITES_ONLY
	return false;
#else
	return ctx->source >= USDT_SOURCE_SLOTS;
#endif
}

/* 0, which the verifier cannot know. */
__u64 usdt_opaque_zero __attribute__((weak)) = 0;

/* `value`, of which the verifier shall know nothing. */
static __always_inline __u64 usdt_unknown(__u64 value)
{
	return value ^ *(volatile __u64 *)&usdt_opaque_zero;
}

/* The same where the verifier would pay for knowing: a value that is this or that constant, by the path taken, would
 * make it explore what follows once for each. Programs with a spec of their own are the exception: there, all follows
 * from what is known. */
static __always_inline __u64 usdt_opaque(const struct usdt_ctx *ctx, __u64 value)
{
	if (usdt_carried_by(ctx, USDT_CARRIER_LINK))
		return value;
	return usdt_unknown(value);
}

/* The lowest `size` bytes of a register or of memory as a number of 64 bits. */
static __always_inline __u64 usdt_extend(__u64 bits, __u32 size, bool is_signed)
{
	const __u32 spare = 64 - 8 * size;

	return is_signed ? (__u64)((__s64)(bits << spare) >> spare) : bits << spare >> spare;
}

/* Thread group and thread as the tracer's pid namespace numbers them; 0: not visible there. */
static __always_inline __u64 usdt_pid_tgid(void)
{
	struct {
		__u32 pid, tgid;
	} ns; /* struct bpf_pidns_info, which not every vmlinux.h has */

	if (!usdt_kernel()->pidns_ino)
		return bpf_get_current_pid_tgid();
	if (bpf_get_ns_current_pid_tgid(usdt_kernel()->pidns_dev, usdt_kernel()->pidns_ino, (void *)&ns, sizeof(ns)))
		return 0;
	return (__u64)ns.tgid << 32 | ns.pid;
}

static __always_inline bool usdt_in_scope(void)
{
	return !usdt_program()->scope.count || usdt_is_among(&usdt_program()->scope, usdt_pid_tgid() >> 32);
}

/* Since 6.13 the JIT gives a program with a frame of 64 bytes or more one stack for each CPU (bpf_enable_priv_stack()
 * in kernel/bpf/verifier.c), relying on a check against recursion that uprobes do not have: of two tasks that pass
 * sites on one CPU, the one that preempts the other overwrites its variables, the pointer to its ring record among
 * them. Programs that make tail calls keep the task's stack. This one, which needs no map, is never made: the verifier
 * notes that it is there and removes it. */
const volatile __u8 usdt_never __attribute__((weak)) = 0;

static __always_inline void usdt_keep_task_stack(void *regs)
{
	/* In assembler, since a branch of the compiler's costs 8 bytes of stack. 12 is bpf_tail_call(). */
	asm volatile("if %0 == 0 goto +4\n"
		     "r1 = %1\n"
		     "r2 = 0\n"
		     "r3 = 0\n"
		     "call 12"
		     :
		     : "r"((__u64)usdt_never), "r"(regs)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
}

#endif /* USDT_BPF_HIT_H */
