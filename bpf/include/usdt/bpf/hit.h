/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* One hit as a BPF program sees it: error numbers, the constants that the program was loaded with, the context of the
 * hit, and whether its process counts. */
#ifndef USDT_BPF_HIT_H
#define USDT_BPF_HIT_H

#ifndef __VMLINUX_H__
#include <linux/bpf.h>
#include <stdbool.h>
#endif

#include <bpf/bpf_helpers.h>

#include "constants.h"

/* Numbers of errno.h, which BPF programs cannot include portably. */
enum {
	USDT_ENOENT = 2,
	USDT_ENXIO = 6,
	USDT_EFAULT = 14,
	USDT_EAGAIN = 11,
	USDT_EEXIST = 17,
	USDT_ERANGE = 34,
	USDT_ENODATA = 61, /* not there at this end of a call, or not known of this kernel */
	USDT_EOPNOTSUPP = 95,
};

/* The layout that this program was built with; user space refuses to load one with another. */
const volatile __u32 usdt_spec_version __attribute__((weak)) = USDT_SPEC_VERSION;
USDT_CONSTANTS(usdt_program)
USDT_CONSTANTS(usdt_kernel)

struct usdt_window; /* memory.h */

/* One hit: what the program was given, and the spec of the site. usdt_context() (carriers.h) makes it. */
struct usdt_ctx {
	void *regs;			   /* the program's context: struct pt_regs or slots (enum usdt_source) */
	const struct usdt_spec *spec;	   /* NULL: it is packed in the cookie, or there is none */
	const struct usdt_spec *site_spec; /* per-link: the site's own spec, with what `values_by_site` names */
	__u64 cookie;
	__u64 carriers; /* usdt_program()->carriers */
	struct usdt_window *window;
	__u32 source;	/* enum usdt_source */
	bool sleepable; /* the program may wait for pages */
	bool returns;	/* this is the end of a call */
};

/* `spec`, which may be NULL, for one use of it. The assembler keeps clang from adding the offset of a member once for
 * all uses, before each has tested for NULL, which the verifier refuses. */
static __always_inline const struct usdt_spec *usdt_spec_of(const struct usdt_spec *spec)
{
	if (spec)
		asm volatile("" : "+r"(spec));
	return spec;
}

/* Returns what the program is given (enum usdt_source). A program that is for USDT sites alone may define
 * USDT_SITES_ONLY before the include: it then has none of the code for other sources and for calls, which costs stack.
 */
static __always_inline __u32 usdt_source(void)
{
#ifdef USDT_SITES_ONLY
	return USDT_SOURCE_USER;
#else
	return usdt_program()->source;
#endif
}

/* Whether the program's sites are calls, whose entry and return are two hits. */
static __always_inline bool usdt_calls(void)
{
#ifdef USDT_SITES_ONLY
	return false;
#else
	return usdt_program()->calls;
#endif
}

/* Whether the program's specs come by this carrier. */
static __always_inline bool usdt_carried_by(const struct usdt_ctx *ctx, enum usdt_carrier carrier)
{
	return ctx->carriers & USDT_CARRIER_BIT(carrier);
}

/* Whether the spec is packed in the cookie. */
static __always_inline bool usdt_is_packed(const struct usdt_ctx *ctx)
{
	return usdt_carried_by(ctx, USDT_CARRIER_COOKIE);
}

/* Whether the program is given slots, not registers. */
static __always_inline bool usdt_in_slots(const struct usdt_ctx *ctx)
{
#ifdef USDT_SITES_ONLY
	return false;
#else
	return ctx->source >= USDT_SOURCE_SLOTS;
#endif
}

/* A zero of which the verifier does not know that it is one: it is a variable. */
__u64 usdt_opaque_zero __attribute__((weak)) = 0;

/* `value`, in a form that tells the verifier nothing about it. */
static __always_inline __u64 usdt_unknown(__u64 value)
{
	return value ^ *(volatile __u64 *)&usdt_opaque_zero;
}

/* Hides a value from the verifier, as usdt_unknown(), where knowing it would cost: a value that is one of several
 * constants, by the path taken, makes it explore what follows once for each of them. Per-link programs are the
 * exception: knowing it removes code of theirs. */
static __always_inline __u64 usdt_opaque(const struct usdt_ctx *ctx, __u64 value)
{
	if (usdt_carried_by(ctx, USDT_CARRIER_LINK))
		return value;
	return usdt_unknown(value);
}

/* The lowest `size` bytes (1 to 8) of a register or of memory as a number of 64 bits. */
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

/* Whether hits of this process count. One comparison serves both meanings of the list: a second one would keep values
 * on the stack, of which the largest programs have none left. */
static __always_inline bool usdt_in_scope(void)
{
	return !usdt_program()->scope.count ||
	       usdt_is_among(&usdt_program()->scope, usdt_pid_tgid() >> 32) != usdt_program()->scope_left_out;
}

/* Always 0, which the verifier knows and clang does not. */
const volatile __u8 usdt_never __attribute__((weak)) = 0;

/* Makes the program run on the stack of the task. Since Linux 6.13 the JIT gives a program with a frame of 64 bytes or
 * more one stack for each CPU (bpf_enable_priv_stack() in kernel/bpf/verifier.c). It relies on a check against
 * recursion that uprobes do not have: of two tasks that pass sites on one CPU, the one that preempts the other
 * overwrites its variables, the pointer to its ring record among them. Programs with a tail call keep the task's stack.
 * The tail call here is never made and needs no map: the verifier notes that it is there, and removes it. */
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
