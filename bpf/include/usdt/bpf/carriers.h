/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Finds a hit's spec under each carrier (spec.h), for BPF programs: usdt_context() begins a hit, usdt_arg_cnt() counts
 * its arguments, usdt_find_arg() finds the spec of one. usdt.bpf.h includes it. */
#ifndef USDT_BPF_CARRIERS_H
#define USDT_BPF_CARRIERS_H

#include "cookie.h"
#include "memory.h"
#include "slots.h"

/* The specs of a plan, by their numbers; the loader sets max_entries and value_size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct usdt_spec) + 12 * sizeof(struct usdt_arg_spec));
} usdt_specs SEC(".maps") __attribute__((weak));

/* On kernels without attach cookies (before Linux 5.15): from USDT_IP_KEY to the cookie. Every site of a program has an
 * entry here. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64));
} usdt_ips SEC(".maps") __attribute__((weak));

#define USDT_NO_SITE (~0u) /* usdt_site(): the number is not known */

/* The cookie that the loader wrote into the instructions (USDT_CARRIER_FIXED). */
static __always_inline __u64 usdt_fixed_cookie(void)
{
	__u64 cookie;

	asm volatile("%0 = %1 ll" : "=r"(cookie) : "i"(USDT_PATCH_COOKIE));
	return cookie;
}

/* The cookie of this hit's site; 0: there is none. bpf_get_attach_cookie() is there for uprobes and kprobes since Linux
 * 5.15, for trampolines since 5.19, for raw tracepoints since 6.10. */
static __always_inline __u64 usdt_find_cookie(const struct usdt_ctx *ctx)
{
	__u64 *cookie, ip;
	__u32 key;

	if (ctx->source != USDT_SOURCE_USER && usdt_carried_by(ctx, USDT_CARRIER_FIXED))
		return usdt_fixed_cookie();
	if (!usdt_carried_by(ctx, USDT_CARRIER_IP_HASH))
		return bpf_get_attach_cookie(ctx->regs);
	ip = usdt_ip(ctx->regs) - (ctx->source == USDT_SOURCE_KERNEL ? USDT_TARGET(KPROBE_IP) : 0);
	key = USDT_IP_KEY(usdt_program()->ip_group, ip);
	cookie = bpf_map_lookup_elem(&usdt_ips, &key);
	return cookie ? *cookie : 0;
}

/* The spec that the cookie names in the table, or NULL. */
static __always_inline const struct usdt_spec *usdt_find_spec(const struct usdt_ctx *ctx)
{
	__u32 key = USDT_COOKIE_SPEC(ctx->cookie);

	return (const struct usdt_spec *)bpf_map_lookup_elem(&usdt_specs, &key);
}

/* The spec of a per-link program. */
static __always_inline const struct usdt_spec *usdt_link_spec(void)
{
	const volatile void *spec = usdt_program()->link_spec;

	/* Otherwise clang would read zeros at compile time, which is what the constant is initialised with. */
	asm volatile("" : "+r"(spec));
	return (const struct usdt_spec *)spec;
}

/* The context of a hit: what its carrier needs to look up is looked up here, once. */
static __always_inline struct usdt_ctx usdt_context(void *regs, struct usdt_window *window, bool sleepable)
{
	struct usdt_ctx ctx = {.regs = regs, .window = window, .source = usdt_source(), .sleepable = sleepable};

	ctx.carriers = usdt_program()->carriers;
	ctx.returns = usdt_at_return(regs);
	if (window && usdt_program()->windows)
		usdt_init_window(&ctx, window);
	if (usdt_carried_by(&ctx, USDT_CARRIER_LINK)) {
		ctx.spec = usdt_link_spec();
		if (!usdt_program()->values_by_site)
			return ctx;
		ctx.cookie = usdt_find_cookie(&ctx);
		ctx.site_spec = usdt_find_spec(&ctx);
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
	const struct usdt_spec *spec;

	if (usdt_is_packed(ctx))
		return USDT_PACKED_COUNT(ctx->cookie);
	spec = usdt_spec_of(ctx->spec);
	return spec ? spec->arg_cnt : 0;
}

/* A position in the arguments of a site, to go through them in order. All zeros: before the first. */
struct usdt_cursor {
	__u32 next;
	__u64 rest; /* packed specs: the bits from argument `next` on */
};

/* Bits of the packed argument that `rest` begins with. */
static __always_inline __u32 usdt_packed_step(__u64 rest)
{
	return usdt_program()->packed_regs ? 4 + USDT_TARGET(REG_BITS)
					   : usdt_packed_width(rest, USDT_TARGET(REG_BITS)) & 63;
}

/* The cookie of a packed spec. clang must not know it for what ctx->cookie is: it would take it apart early, in
 * programs of other carriers, too. */
static __always_inline __u64 usdt_packed_cookie(const struct usdt_ctx *ctx)
{
	__u64 cookie = ctx->cookie;

	asm volatile("" : "+r"(cookie));
	return cookie;
}

/* The packed argument that `rest` begins with. */
static __always_inline struct usdt_arg_spec usdt_unpack(const struct usdt_ctx *ctx, __u64 rest)
{
	return usdt_unpack_arg(rest, USDT_TARGET(REG_BITS), USDT_PACKED_ADDR32(usdt_packed_cookie(ctx)));
}

/* usdt_next_spec() of a packed spec. */
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

/* Argument `n` of a spec in memory, which is in the table or in the program; false: there is none. */
static __always_inline bool usdt_stored_spec(const struct usdt_ctx *ctx, __u32 n, struct usdt_arg_spec *spec)
{
	const bool linked = usdt_carried_by(ctx, USDT_CARRIER_LINK);
	const struct usdt_spec *found = usdt_spec_of(ctx->spec);

	if (!found || n >= (linked ? USDT_LINK_ENTRIES : usdt_program()->max_args) || n >= found->arg_cnt)
		return false;
	*spec = found->args[n];
	if (linked && n < USDT_LINK_ARGS && usdt_program()->values_by_site & 1u << n) {
		found = usdt_spec_of(ctx->site_spec);
		if (!found || n >= usdt_program()->max_args)
			return false;
		spec->value = found->args[n].value;
	}
	return true;
}

/* The spec of the next argument; false after the last one. */
static __always_inline bool usdt_next_spec(const struct usdt_ctx *ctx, struct usdt_cursor *at,
					   struct usdt_arg_spec *spec)
{
	return usdt_is_packed(ctx) ? usdt_next_packed(ctx, at, spec) : usdt_stored_spec(ctx, at->next++, spec);
}

/* The bits of a packed spec from argument `n` on; false: there is no such argument. */
static __always_inline bool usdt_find_packed(const struct usdt_ctx *ctx, __u32 n, __u64 *rest)
{
	const __u64 cookie = usdt_packed_cookie(ctx);

	*rest = cookie;
	if (n >= USDT_PACKED_ARGS || n >= USDT_PACKED_COUNT(cookie))
		return false;
	if (usdt_program()->packed_regs) {
		*rest >>= (4 + USDT_TARGET(REG_BITS)) * n;
		return true;
	}
	for (__u32 i = 0; i < USDT_PACKED_ARGS - 1 && i < n; i++)
		*rest >>= usdt_packed_step(*rest);
	return true;
}

/* The spec of argument `n`; false: this site has no such argument. */
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

#endif /* USDT_BPF_CARRIERS_H */
