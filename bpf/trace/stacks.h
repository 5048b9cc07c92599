/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Stacks of the kernel and of the process, in records and as keys of rows. */
#ifndef USDT_TRACE_STACKS_H
#define USDT_TRACE_STACKS_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "../stock.h"

/* Whom a function returns to, at its first instruction, where unwinding by frames does not see it: the function has no
 * frame yet. 0: it is seen (x86-64, which unwinds by tables). */
static __always_inline __u64 direct_caller(const struct usdt_ctx *ctx)
{
	__u64 caller = 0, top;

	if (USDT_TARGET(TABLES_UNWIND))
		return 0;
	if (USDT_TARGET(CALLER_OFFSET) >= 0) {
		USDT_LOAD_REG(caller, ctx->regs, USDT_TARGET(CALLER_OFFSET));
	} else {
		USDT_LOAD_REG(top, ctx->regs, USDT_TARGET(FRAME_OFFSET));
		bpf_probe_read_kernel(&caller, USDT_TARGET(ADDRESS_SIZE), (const void *)top);
	}
	return caller;
}

/* The kernel's stack, innermost first; its bytes or a negative errno. */
static __always_inline long take_stack(const struct usdt_ctx *ctx, __u64 *stack)
{
	const __u32 size = usdt_stock()->record.stack_depth * sizeof(*stack);
	__u64 caller = 0;
	long taken;

	if (usdt_source() == USDT_SOURCE_KERNEL && !ctx->returns && size > sizeof(*stack))
		caller = direct_caller(ctx);
	if (!caller)
		return bpf_get_stack(ctx->regs, stack, size, 0);
	taken = bpf_get_stack(ctx->regs, stack + 1, size - sizeof(*stack), 0);
	if (taken < (long)sizeof(*stack))
		return taken;
	stack[0] = stack[1];
	stack[1] = caller;
	return taken + sizeof(*stack);
}

/* The registers of the process: of the hit, or those with which it entered the kernel (bpf_task_pt_regs(): 5.15). */
static __always_inline void take_user_registers(const struct usdt_ctx *ctx, __u64 *to)
{
	void *regs = ctx->regs;
	__u64 value;

	if (usdt_source() != USDT_SOURCE_USER)
		regs = (void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
#define USDT_STORE(word, offset)            \
	USDT_LOAD_REG(value, regs, offset); \
	to[word] = value;
	USDT_TARGET(PT_REGS)(USDT_STORE)
#undef USDT_STORE
}

/* Copies the stack: up to a multiple of a piece, which no page's end is within, and then piece by piece as far as there
 * is memory. Returns bytes. */
static __always_inline __u32 copy_stack(char *to, __u64 from)
{
	const __u32 piece = usdt_stock()->user_stack.copy_piece;
	__u64 size = piece - (from & (piece - 1));

	/* As in capture() of texts.h. */
	asm volatile("" : "+r"(size));
	if (size > piece || bpf_probe_read_user(to, size, (const void *)from))
		return 0;
	for (__u32 i = 0; i < usdt_stock()->user_stack.copy_pieces; i++) {
		if (bpf_probe_read_user(to + size, piece, (const void *)(from + size)))
			break;
		size += piece;
	}
	return size;
}

/* Copies the return addresses that return probes replaced on the stack, as the kernel keeps them for each thread
 * (struct return_instance of include/linux/uprobes.h). */
static __always_inline void take_replaced_returns(struct usdt_replaced_return *to)
{
	const volatile struct usdt_return_offsets *offsets = &usdt_stock()->returns;
	void *at = (void *)bpf_get_current_task() + offsets->utask;
	__u32 i;

	to[0].address = 0;
	if (!offsets->utask || bpf_probe_read_kernel(&at, sizeof(at), at) || !at ||
	    bpf_probe_read_kernel(&at, sizeof(at), at + offsets->first))
		return;
	for (i = 0; i < USDT_REPLACED_RETURNS; i++) {
		to[i].address = 0;
		if (!at || bpf_probe_read_kernel(&to[i].address, 8, at + offsets->address))
			return;
		bpf_probe_read_kernel(&to[i].stack, 8, at + offsets->stack);
		if (bpf_probe_read_kernel(&at, sizeof(at), at + offsets->next))
			at = NULL;
	}
}

/* Threads of the kernel have no process: nothing is found by frame pointers, not even where it entered the kernel. */
static __always_inline void take_user_stack(const struct usdt_ctx *ctx, void *record)
{
	struct usdt_user_stack *stack = record + usdt_stock()->user_stack.at;
	const __u32 size = usdt_stock()->user_stack.depth * sizeof(__u64);
	void *addresses = (void *)stack + sizeof(*stack);

	stack->size = 0;
	stack->copied = 0;
	if (size)
		stack->size = bpf_get_stack(ctx->regs, addresses, size, BPF_F_USER_STACK);
	if (usdt_source() != USDT_SOURCE_USER && stack->size <= 0)
		return;
	take_user_registers(ctx, stack->regs);
	take_replaced_returns(stack->returns);
	stack->copied = copy_stack(addresses + size, stack->regs[USDT_TARGET(STACK_WORD)]);
}

/* Stacks that are keys of rows, by a hash of their addresses. If the first map has another one in that place, the
 * second may have room. The loader gives both their sizes, if a table has such keys. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64));
} usdt_stacks SEC(".maps"), usdt_more_stacks SEC(".maps");

/* The number of the stack of a hit, or a negative errno. No stack is put in the place of another one. */
static __always_inline __s32 stack_number(const struct usdt_ctx *ctx, __u64 flags)
{
	long number = bpf_get_stackid(ctx->regs, &usdt_stacks, flags);

	if (number != -USDT_EEXIST)
		return number;
	number = bpf_get_stackid(ctx->regs, &usdt_more_stacks, flags);
	return number < 0 ? number : number | USDT_MORE_STACKS;
}

/* Puts where the call of a process returns to into `address`, which is 0: at its first instruction, which has no frame
 * yet, or at a RET. */
static __always_inline void load_return_address(const struct usdt_ctx *ctx, __u64 *address)
{
	__u64 at;

	if (USDT_TARGET(CALLER_OFFSET) >= 0) {
		USDT_LOAD_REG(at, ctx->regs, USDT_TARGET(CALLER_OFFSET));
		*address = at;
		return;
	}
	USDT_LOAD_REG(at, ctx->regs, USDT_TARGET(FRAME_OFFSET));
	if (usdt_address_size(ctx->regs) == sizeof(__u32))
		bpf_probe_read_user(address, sizeof(__u32), (const void *)at);
	else
		bpf_probe_read_user(address, sizeof(__u64), (const void *)at);
}

/* The stacks of a hit that are keys of its row: that of the process, */
static __always_inline void take_user_key(const struct usdt_ctx *ctx, struct usdt_row_stack *key)
{
	key->number = stack_number(ctx, BPF_F_USER_STACK);
	key->pid = usdt_pid_tgid() >> 32;
	if (!usdt_program()->at_entry || (ctx->returns && usdt_program()->return_by == USDT_RETURN_BY_PROBE))
		return;
	load_return_address(ctx, &key->caller);
}

/* and that of the kernel. */
static __always_inline void take_kernel_key(const struct usdt_ctx *ctx, struct usdt_row_stack *key)
{
	/* A process at a USDT site is not in the kernel. */
	if (usdt_source() == USDT_SOURCE_USER) {
		key->number = -USDT_ENOENT;
		return;
	}
	key->number = stack_number(ctx, usdt_program()->tracer_frames);
	if (usdt_source() == USDT_SOURCE_KERNEL && !ctx->returns)
		key->caller = direct_caller(ctx);
}

/* Both of a call that begins, behind its record: what its row will have. */
static __always_inline struct usdt_row_stack *kept_stacks(struct usdt_event *record)
{
	return (void *)record + usdt_stock()->record.size;
}

static __always_inline void keep_stacks(const struct usdt_ctx *ctx, struct usdt_event *record)
{
	struct usdt_row_stack *kept = kept_stacks(record);

	if (usdt_stock()->table.user_stack)
		take_user_key(ctx, &kept[0]);
	if (usdt_stock()->table.kernel_stack)
		take_kernel_key(ctx, &kept[1]);
}

/* Puts stacks into a row: those of this hit, or those kept of a call. */
static __always_inline void put_stacks(const struct usdt_ctx *ctx, struct usdt_row *row, struct usdt_event *call)
{
	struct usdt_row_stack *key;

	if (usdt_stock()->table.user_stack) {
		key = (void *)row->key + usdt_stock()->table.user_stack - 1;
		if (call)
			*key = kept_stacks(call)[0];
		else
			take_user_key(ctx, key);
	}
	if (usdt_stock()->table.kernel_stack) {
		key = (void *)row->key + usdt_stock()->table.kernel_stack - 1;
		if (call)
			*key = kept_stacks(call)[1];
		else
			take_kernel_key(ctx, key);
	}
}

#endif /* USDT_TRACE_STACKS_H */
