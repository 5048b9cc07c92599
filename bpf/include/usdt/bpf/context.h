/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* One hit, and how its spec is found under each carrier (spec.h). For BPF programs; included by usdt.bpf.h. */
#ifndef USDT_BPF_CONTEXT_H
#define USDT_BPF_CONTEXT_H

#include "processes.h"
#include "read.h"

/* The layout this program was built with: user space refuses to fill in another. */
const volatile __u32 usdt_spec_version __attribute__((weak)) = USDT_SPEC_VERSION;
/* USDT_CARRIER_BIT of this program's carrier, perhaps IP_HASH. */
const volatile __u32 usdt_carriers __attribute__((weak)) = USDT_CARRIER_BIT(USDT_CARRIER_TABLE);
/* Longest argument list of the plan. */
const volatile __u32 usdt_max_args __attribute__((weak)) = 12;
/* Bits of the site number in packed cookies; above 30: they hold none. */
const volatile __u32 usdt_site_bits __attribute__((weak)) = 0;
/* The plan has one site: its number needs no cookie. */
const volatile __u8 usdt_one_site __attribute__((weak)) = 0;
/* All packed cookies are of registers alone, so that argument N is at a place that is known. */
const volatile __u8 usdt_packed_regs __attribute__((weak)) = 0;
/* The application's cookie, where it is the same for all sites. */
const volatile __u64 usdt_user_cookie __attribute__((weak)) = 0;
/* Kernels without attach cookies: this program's part of the sites. */
const volatile __u32 usdt_ip_group __attribute__((weak)) = 0;

/* Per-link programs: the spec itself, a struct usdt_spec with USDT_LINK_ARGS arguments. As words, since `bpftool gen
 * skeleton` prints the type of each constant, and defines no structure that has a name. */
const volatile __u64 usdt_link[(sizeof(struct usdt_spec) + USDT_LINK_ARGS * sizeof(struct usdt_arg_spec)) / 8]
    __attribute__((weak)) = {};
/* Arguments whose `value` (displacement or constant) differs between this program's sites: it is in the table. */
const volatile __u32 usdt_link_vary __attribute__((weak)) = 0;

/* Spec table: the loader sets max_entries and value_size from the plan. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct usdt_spec) + 12 * sizeof(struct usdt_arg_spec));
} usdt_specs SEC(".maps") __attribute__((weak));

/* USDT_IP_KEY to cookie; a program is attached to no address that has none here. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64));
} usdt_ips SEC(".maps") __attribute__((weak));

/* Hits of other processes than these do not count; none: all do. */
const volatile struct usdt_processes usdt_scope __attribute__((weak)) = {};
/* Their pid namespace, where that is not the initial one. */
const volatile __u64 usdt_pidns_dev __attribute__((weak)) = 0;
const volatile __u64 usdt_pidns_ino __attribute__((weak)) = 0;

#define USDT_NO_SITE (~0u)

/* Thread group and thread as the tracer's pid namespace numbers them; 0: not visible there. */
static __always_inline __u64 usdt_pid_tgid(void)
{
	struct {
		__u32 pid, tgid;
	} ns; /* struct bpf_pidns_info, which not every vmlinux.h has */

	if (!usdt_pidns_ino)
		return bpf_get_current_pid_tgid();
	if (bpf_get_ns_current_pid_tgid(usdt_pidns_dev, usdt_pidns_ino, (void *)&ns, sizeof(ns)))
		return 0;
	return (__u64)ns.tgid << 32 | ns.pid;
}

static __always_inline bool usdt_in_scope(void)
{
	return !usdt_scope.count || usdt_is_among(&usdt_scope, usdt_pid_tgid() >> 32);
}

static __always_inline bool usdt_carried_by(const struct usdt_ctx *ctx, enum usdt_carrier carrier)
{
	return ctx->carriers & USDT_CARRIER_BIT(carrier);
}

static __always_inline bool usdt_is_packed(const struct usdt_ctx *ctx)
{
	return usdt_carried_by(ctx, USDT_CARRIER_COOKIE);
}

static __always_inline __u64 usdt_fixed_cookie(void)
{
	__u64 cookie;

	asm volatile("%0 = %1 ll" : "=r"(cookie) : "i"(USDT_PATCH_COOKIE));
	return cookie;
}

static __always_inline __u64 usdt_find_cookie(const struct usdt_ctx *ctx)
{
	__u64 *cookie;
	__u32 key;

	if (ctx->source != USDT_SOURCE_USER && usdt_carried_by(ctx, USDT_CARRIER_FIXED))
		return usdt_fixed_cookie();
	if (!usdt_carried_by(ctx, USDT_CARRIER_IP_HASH))
		return bpf_get_attach_cookie(ctx->regs);
	key = USDT_IP_KEY(usdt_ip_group, usdt_ip(ctx->regs) - (ctx->source == USDT_SOURCE_KERNEL ? USDT_KPROBE_IP : 0));
	cookie = bpf_map_lookup_elem(&usdt_ips, &key);
	return cookie ? *cookie : 0;
}

static __always_inline const struct usdt_spec *usdt_find_spec(const struct usdt_ctx *ctx)
{
	__u32 key = USDT_COOKIE_SPEC(ctx->cookie);

	return (const struct usdt_spec *)bpf_map_lookup_elem(&usdt_specs, &key);
}

static __always_inline const struct usdt_spec *usdt_own_spec(void)
{
	const volatile void *own = usdt_link;

	/* Else clang would take the initialiser above for its value. */
	asm volatile("" : "+r"(own));
	return (const struct usdt_spec *)own;
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

/* Looks up what the carrier wants looked up, once for each hit. */
static __always_inline struct usdt_ctx usdt_context(void *regs, struct usdt_window *window, bool sleepable)
{
	struct usdt_ctx ctx = {.regs = regs, .window = window, .source = USDT_SOURCE, .sleepable = sleepable};

	ctx.carriers = usdt_carriers;
	ctx.returns = usdt_at_return(regs);
	if (window && usdt_windows)
		usdt_init_window(&ctx, window);
	if (usdt_carried_by(&ctx, USDT_CARRIER_LINK)) {
		ctx.spec = usdt_own_spec();
		if (!usdt_link_vary)
			return ctx;
		ctx.cookie = usdt_find_cookie(&ctx);
		ctx.vary = usdt_find_spec(&ctx);
		return ctx;
	}
	ctx.cookie = usdt_find_cookie(&ctx);
	if (!usdt_is_packed(&ctx))
		ctx.spec = usdt_find_spec(&ctx);
	return ctx;
}

/* Number of arguments of this site. */
static __always_inline __u32 usdt_arg_cnt(const struct usdt_ctx *ctx)
{
	if (usdt_is_packed(ctx))
		return USDT_PACKED_COUNT(ctx->cookie);
	return ctx->spec ? ctx->spec->arg_cnt : 0;
}

/* The specs of a site's arguments one after the other. */
struct usdt_cursor {
	__u32 next;
	__u64 rest; /* packed: what begins with argument `next` */
};

static __always_inline __u32 usdt_packed_step(__u64 rest)
{
	return usdt_packed_regs ? 4 + USDT_REG_BITS : usdt_packed_width(rest, USDT_REG_BITS) & 63;
}

static __always_inline struct usdt_arg_spec usdt_unpack(const struct usdt_ctx *ctx, __u64 rest)
{
	return usdt_unpack_arg(rest, USDT_REG_BITS, USDT_PACKED_ADDR32(ctx->cookie));
}

static __always_inline bool usdt_next_packed(const struct usdt_ctx *ctx, struct usdt_cursor *at,
					     struct usdt_arg_spec *spec)
{
	if (at->next >= USDT_PACKED_ARGS || at->next >= USDT_PACKED_COUNT(ctx->cookie))
		return false;
	if (at->next == 0)
		at->rest = ctx->cookie;
	*spec = usdt_unpack(ctx, at->rest);
	at->rest >>= usdt_packed_step(at->rest);
	at->next++;
	return true;
}

/* Argument `n` of a spec in memory: of the table, or of the program. */
static __always_inline bool usdt_stored_spec(const struct usdt_ctx *ctx, __u32 n, struct usdt_arg_spec *spec)
{
	const bool own = usdt_carried_by(ctx, USDT_CARRIER_LINK);

	if (!ctx->spec || n >= (own ? USDT_LINK_ARGS : usdt_max_args) || n >= ctx->spec->arg_cnt)
		return false;
	*spec = ctx->spec->args[n];
	if (own && usdt_link_vary & 1u << n) {
		const struct usdt_spec *vary = ctx->vary;

		if (!vary || n >= usdt_max_args)
			return false;
		asm volatile("" : "+r"(vary)); /* else clang adds the offset before the test */
		spec->value = vary->args[n].value;
	}
	return true;
}

/* The next argument's spec; false after the last. */
static __always_inline bool usdt_next_spec(const struct usdt_ctx *ctx, struct usdt_cursor *at,
					   struct usdt_arg_spec *spec)
{
	return usdt_is_packed(ctx) ? usdt_next_packed(ctx, at, spec) : usdt_stored_spec(ctx, at->next++, spec);
}

/* What begins with argument `n` of a packed spec; false if there is no such argument. */
static __always_inline bool usdt_find_packed(const struct usdt_ctx *ctx, __u32 n, __u64 *rest)
{
	*rest = ctx->cookie;
	if (n >= USDT_PACKED_ARGS || n >= USDT_PACKED_COUNT(ctx->cookie))
		return false;
	if (usdt_packed_regs) {
		*rest >>= (4 + USDT_REG_BITS) * n;
		return true;
	}
	for (__u32 i = 0; i < USDT_PACKED_ARGS - 1 && i < n; i++)
		*rest >>= usdt_packed_step(*rest);
	return true;
}

/* Argument `n`'s spec; false if there is no such argument at this site. */
static __always_inline bool usdt_find_arg(const struct usdt_ctx *ctx, __u32 n, struct usdt_arg_spec *spec)
{
	__u64 rest;

	if (!usdt_is_packed(ctx))
		return usdt_stored_spec(ctx, n, spec);
	if (!usdt_find_packed(ctx, n, &rest))
		return false;
	*spec = usdt_unpack(ctx, rest);
	return true;
}

#endif /* USDT_BPF_CONTEXT_H */
