/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The stock program behind usdt-trace: one ring record for each hit or call, every loss counted. */
#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "descends.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The consumer sets it before it sleeps; the next record wakes it. */
__u32 usdt_consumer_asleep = 0;

/* The consumer finds anew what goes and comes again under the same name. */
struct usdt_cgroup usdt_cgroups[USDT_MAX_CGROUPS] = {};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} usdt_events SEC(".maps");

/* Rows of one entry a site. A processor counts in one of them, so that it seldom waits for another; how many processors
 * there are need not be known exactly (what reads a per-CPU map must know: the kernel writes all of them). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct usdt_site_stats);
} usdt_stats SEC(".maps");

/* How often an argument that may point to text pointed nowhere, by site. One that does so often is left alone. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct usdt_misreads);
} usdt_misreads SEC(".maps");

/* Records of calls that have not ended; the loader gives it the size of a record. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct usdt_call_key));
	__uint(value_size, sizeof(struct usdt_event));
} usdt_open_calls SEC(".maps");

/* One record of zeros, what a new entry of usdt_open_calls is made from. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct usdt_event));
} usdt_blank SEC(".maps");

/* The table's rows, of which the loader gives the size of the keys. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u64));
	__uint(value_size, sizeof(struct usdt_tally));
} usdt_rows SEC(".maps");

/* What a program can do besides handing over the numbers of a hit. The kernel reads all of a program before it finds
 * out what its constants leave of it, so that those that do less are attached sooner. */
enum abilities {
	COPIES_MEMORY = 1, /* texts and the stack of the process; it waits for pages */
	MAKES_CALLS = 2,   /* of both ends one event */
	TAKES_STEPS = 4,   /* to members */
	FILLS_TABLE = 8,   /* hits become rows instead of events */
	HAS_EXTREMES = 16, /* with the smallest and the largest value: instructions of Linux 5.12 */
};

/* Of what a program can do, what it needs for a record's arguments: rows have neither texts nor stacks of records. */
static __always_inline __u32 for_records(const __u32 can)
{
	return can & FILLS_TABLE ? can & TAKES_STEPS : can;
}

/* Programs are linked at 4 MiB or above (x86-64 and arm64 without PIE; i386 at 128 MiB): what is below is no pointer.
 */
#define LOWEST_POINTER 0x400000
/* Reading where nothing is costs 1.2 us, ten times what reading a text does. */
#define MOST_MISREADS 64

/* What argument `i` may point to; 0: nothing that can be read. No page is waited for: nobody said that it is text. */
static __always_inline int capture_likely(const struct usdt_ctx *ctx, void *record, __u32 i, char *to)
{
	struct usdt_event_arg *args = record + sizeof(struct usdt_event);
	__u32 site = ((struct usdt_event *)record)->site - usdt_stock()->site_base;
	struct usdt_misreads *misreads;
	int length;

	if (args[i].bits < LOWEST_POINTER || i >= USDT_LIKELY_ARGS)
		return 0;
	misreads = bpf_map_lookup_elem(&usdt_misreads, &site);
	if (!misreads || misreads->of_arg[i] >= MOST_MISREADS)
		return 0;
	length = usdt_copy_text(ctx, to, usdt_stock()->string_size, args[i].bits);
	if (length >= 0)
		return length;
	misreads->of_arg[i]++;
	return 0;
}

/* Of a text with a length, as many bytes as fit and one more, which shows that it was cut. */
static __always_inline int capture_bytes(const struct usdt_ctx *ctx, char *to, __u64 length, __u64 pointer)
{
	__u64 most = usdt_stock()->string_size - 1;

	if ((__s64)length < 0)
		return -USDT_ERANGE;
	if (length == 0)
		return 1;
	if (length > most)
		length = most;
	/* As in capture(). */
	asm volatile("" : "+r"(length));
	if (length == 0 || length > most)
		return -USDT_ERANGE;
	if (usdt_copy_bytes(ctx, to, length, pointer))
		return -USDT_EFAULT;
	return length + 1;
}

/* The text argument `i` points to, into a slot of the record; 0: its length is not known yet. */
static __always_inline int capture(const struct usdt_ctx *ctx, void *record, __u32 i, __u32 how, __u64 slot)
{
	struct usdt_event_arg *args = record + sizeof(struct usdt_event);
	__u64 text = slot * usdt_stock()->string_size, by = how - USDT_CAPTURE_LENGTH;
	__u32 at = sizeof(struct usdt_event) + usdt_program()->max_args * sizeof(struct usdt_event_arg) +
		   usdt_stock()->stack_depth * sizeof(__u64);
	char *to;
	int error;

	/* Checked just before it is used: verifiers of old kernels (5.10) forget the bounds of what was spilled. */
	asm volatile("" : "+r"(text));
	if (!usdt_stock()->string_slots || text > (usdt_stock()->string_slots - 1ull) * usdt_stock()->string_size)
		return 0;
	to = record + at + text;
	asm volatile("" : "+r"(to));
	if (how == USDT_CAPTURE_LIKELY)
		return capture_likely(ctx, record, i, to);
	if (how == USDT_CAPTURE_STRING)
		return usdt_copy_text(ctx, to, usdt_stock()->string_size, args[i].bits);
	asm volatile("" : "+r"(by));
	if (by >= usdt_program()->max_args)
		return -USDT_ENOENT;
	error = args[by].error;
	if (error)
		return error == -USDT_ENODATA && usdt_calls() && !ctx->returns ? 0 : error;
	return capture_bytes(ctx, to, args[by].bits, args[i].bits);
}

/* Texts behind all values, since some of those are their lengths. Packed specs have none. */
static __always_inline void capture_texts(void *record, const struct usdt_ctx *ctx)
{
	struct usdt_event_arg *args = record + sizeof(struct usdt_event);
	struct usdt_cursor at = {};
	struct usdt_arg_spec spec;
	__u64 slot = 0;

	if (!usdt_stock()->string_slots || usdt_is_packed(ctx))
		return;
	for (__u32 i = 0; i < usdt_program()->max_args && usdt_next_spec(ctx, &at, &spec); i++) {
		if (!spec.capture)
			continue;
		if (!args[i].error && !args[i].text)
			args[i].text = capture(ctx, record, i, spec.capture, slot);
		slot = usdt_opaque(ctx, slot + 1);
	}
}

/* Records of calls are filled at both ends: at the second what the first one could not know. */
static __always_inline void fill_args(void *record, const struct usdt_ctx *ctx, const __u32 can, bool second_end)
{
	struct usdt_event_arg *args = record + sizeof(struct usdt_event);
	struct usdt_cursor at = {};
	struct usdt_arg_spec spec;

	for (__u32 i = 0; i < usdt_program()->max_args && usdt_next_spec(ctx, &at, &spec); i++) {
		__u32 failed = 0;
		__u64 bits = 0;
		int error;

		if (second_end && args[i].error != -USDT_ENODATA)
			continue;
		error = can & TAKES_STEPS ? usdt_value(ctx, &spec, &bits, &failed) : usdt_read(ctx, &spec, &bits);
		args[i].error = usdt_opaque(ctx, error); /* one state for the verifier, not one for each error */
		args[i].bits = bits;
		args[i].text = failed;
	}
	if (can & COPIES_MEMORY)
		capture_texts(record, ctx);
}

/* Whom a function returns to, at its first instruction, where unwinding by frames does not see it: the function has no
 * frame yet. 0: it is seen (x86-64, which unwinds by tables). */
static __always_inline __u64 direct_caller(const struct usdt_ctx *ctx)
{
	__u64 caller = 0;
#if defined(__TARGET_ARCH_arm64)
	USDT_LOAD_REG(caller, ctx->regs, USDT_ARM64_CALLER_OFFSET);
#elif defined(__TARGET_ARCH_i386)
	__u64 top;

	USDT_LOAD_REG(top, ctx->regs, USDT_I386_FRAME_OFFSET);
	bpf_probe_read_kernel(&caller, sizeof(__u32), (const void *)top);
#endif
	return caller;
}

/* The kernel's stack, innermost first; its bytes or a negative errno. */
static __always_inline long take_stack(const struct usdt_ctx *ctx, __u64 *stack)
{
	const __u32 size = usdt_stock()->stack_depth * sizeof(*stack);
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

/* What is on the stack: up to a multiple of a piece, which no page's end is within, and then piece by piece as far as
 * there is memory. Bytes. */
static __always_inline __u32 copy_stack(char *to, __u64 from)
{
	const __u32 piece = usdt_stock()->user_copy_piece;
	__u64 size = piece - (from & (piece - 1));

	/* As in capture(). */
	asm volatile("" : "+r"(size));
	if (size > piece || bpf_probe_read_user(to, size, (const void *)from))
		return 0;
	for (__u32 i = 0; i < usdt_stock()->user_copy_pieces; i++) {
		if (bpf_probe_read_user(to + size, piece, (const void *)(from + size)))
			break;
		size += piece;
	}
	return size;
}

/* What return probes replaced on the stack, as the kernel keeps it for each thread (struct return_instance of
 * include/linux/uprobes.h). */
static __always_inline void take_replaced_returns(struct usdt_replaced_return *to)
{
	const volatile struct usdt_stock_constants *offsets = usdt_stock();
	void *at = (void *)bpf_get_current_task() + offsets->task_utask_offset;
	__u32 i;

	to[0].address = 0;
	if (!offsets->task_utask_offset || bpf_probe_read_kernel(&at, sizeof(at), at) || !at ||
	    bpf_probe_read_kernel(&at, sizeof(at), at + offsets->utask_returns_offset))
		return;
	for (i = 0; i < USDT_REPLACED_RETURNS; i++) {
		to[i].address = 0;
		if (!at || bpf_probe_read_kernel(&to[i].address, 8, at + offsets->return_address_offset))
			return;
		bpf_probe_read_kernel(&to[i].stack, 8, at + offsets->return_stack_offset);
		if (bpf_probe_read_kernel(&at, sizeof(at), at + offsets->return_next_offset))
			at = NULL;
	}
}

/* Threads of the kernel have no process: nothing is found by frame pointers, not even where it entered the kernel. */
static __always_inline void take_user_stack(const struct usdt_ctx *ctx, void *record)
{
	struct usdt_user_stack *stack = record + usdt_stock()->user_stack_at;
	const __u32 size = usdt_stock()->user_stack_depth * sizeof(__u64);
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

static __always_inline void fill(struct usdt_event *event, const struct usdt_ctx *ctx, const __u32 can, __u32 site,
				 __u64 pid_tgid)
{
	void *stack = (void *)event + sizeof(*event) + usdt_program()->max_args * sizeof(struct usdt_event_arg);

	event->ts = bpf_ktime_get_ns();
	event->pid = pid_tgid >> 32;
	event->tid = (__u32)pid_tgid;
	event->cpu = bpf_get_smp_processor_id();
	event->site = usdt_stock()->site_base + site;
	event->ip = ctx->source == USDT_SOURCE_USER ? usdt_ip(ctx->regs) : 0;
	event->duration = 0;
	event->stack_size = 0;
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	event->arg_cnt = usdt_arg_cnt(ctx);
	/* A process at a USDT site is not in the kernel. */
	if (usdt_stock()->stack_depth && usdt_source() != USDT_SOURCE_USER)
		event->stack_size = take_stack(ctx, stack);
	if ((can & COPIES_MEMORY) && usdt_stock()->user_stack_at)
		take_user_stack(ctx, event);
	fill_args(event, ctx, can, false);
}

/* A busy consumer polls; only a sleeping one is woken, once. */
static __always_inline __u64 wake_flags(void)
{
	if (!usdt_consumer_asleep)
		return BPF_RB_NO_WAKEUP;
	usdt_consumer_asleep = 0;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline struct usdt_site_stats *stats_of(__u32 site)
{
	__u32 key = site + (bpf_get_smp_processor_id() & usdt_stock()->stats_row_mask) * usdt_stock()->stats_row_size;

	return bpf_map_lookup_elem(&usdt_stats, &key);
}

static __always_inline void count_lost(struct usdt_site_stats *stats)
{
	__sync_fetch_and_add(&stats->ring_full, 1);
}

static __always_inline bool may_wait(const __u32 can)
{
	return (can & COPIES_MEMORY) && usdt_stock()->may_sleep && usdt_source() == USDT_SOURCE_USER;
}

/* How often two processors can change an extreme between each other's looks. */
#define MOST_TRIES 64

/* Makes `*extreme` the larger of itself and `value`; of `flip` ~0 the smaller. False: others were always faster. */
static __always_inline bool raise(__u64 *extreme, __u64 value, const __u64 flip)
{
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < MOST_TRIES; i++) {
		__u64 known = *(volatile __u64 *)extreme;

		if ((__s64)(known ^ flip) >= (__s64)(value ^ flip) ||
		    __sync_val_compare_and_swap(extreme, known, value) == known)
			return true;
	}
	return false;
}

static __always_inline void count_unrowed(struct usdt_site_stats *stats)
{
	__sync_fetch_and_add(&stats->table_full, 1);
}

/* Adds a hit to its row, which its first hit makes: from a tally where the question was. */
static __always_inline void tally(struct usdt_row *row, struct usdt_question *question, const __u32 can,
				  struct usdt_site_stats *stats)
{
	const __u64 bias = usdt_stock()->value_bias, value = question->values[0], biased = value ^ bias;
	const __u64 low = value & ((1ull << USDT_TALLY_LOW_BITS) - 1);
	const __u64 high = bias ? value >> USDT_TALLY_LOW_BITS : (__u64)((__s64)value >> USDT_TALLY_LOW_BITS);
	struct usdt_tally *first = (struct usdt_tally *)question, *known;

	row->part = bpf_get_smp_processor_id() & usdt_stock()->table_part_mask;
	known = bpf_map_lookup_elem(&usdt_rows, row);
	if (!known) {
		*first = (struct usdt_tally){1, low, high, biased, biased};
		if (!bpf_map_update_elem(&usdt_rows, row, first, BPF_NOEXIST))
			return;
		known = bpf_map_lookup_elem(&usdt_rows, row);
		if (!known) {
			count_unrowed(stats);
			return;
		}
	}
	if ((can & HAS_EXTREMES) && (!raise(&known->maximum, biased, 0) || !raise(&known->minimum, biased, ~0ull))) {
		count_unrowed(stats);
		return;
	}
	__sync_fetch_and_add(&known->count, 1);
	__sync_fetch_and_add(&known->low, low);
	__sync_fetch_and_add(&known->high, high);
}

/* Whether the hit becomes an event, by the question about it; where it does not count, that is counted, and where there
 * is a table, it becomes a row. */
static __always_inline bool is_wanted(struct usdt_question *question, struct usdt_row *row, const __u32 can,
				      struct usdt_site_stats *stats)
{
	__u64 answer;

	if (can & FILLS_TABLE) {
		*row = (struct usdt_row){};
		answer = usdt_compiled_row(question, row);
	} else {
		answer = usdt_compiled_answer(question);
	}
	if (answer == USDT_NO) {
		__sync_fetch_and_add(&stats->rejected, 1);
		return false;
	}
	if (answer != USDT_YES) {
		__sync_fetch_and_add(&stats->undecided, 1);
		return false;
	}
	if (can & FILLS_TABLE)
		tally(row, question, can, stats);
	return !(can & FILLS_TABLE);
}

static __always_inline bool is_hit_wanted(const struct usdt_ctx *ctx, struct usdt_row *row, const __u32 can,
					  struct usdt_site_stats *stats, __u64 start)
{
	struct usdt_question *question;
	bool wanted;

	if (!(can & FILLS_TABLE) && !usdt_program()->filtered)
		return true;
	question = usdt_begin_question(ctx);
	if (may_wait(can) && question->unread) {
		((struct usdt_ctx *)ctx)->sleepable = true;
		question = usdt_begin_question(ctx);
		((struct usdt_ctx *)ctx)->sleepable = false;
	}
	if (can & FILLS_TABLE)
		question->site = usdt_site(ctx);
	if ((can & MAKES_CALLS) && start)
		question->duration = bpf_ktime_get_ns() - start;
	wanted = is_wanted(question, row, can, stats);
	if (!(can & FILLS_TABLE))
		usdt_end_question(ctx);
	return wanted;
}

/* The same at the end of a call, of which both ends are in its record. */
static __always_inline bool is_call_wanted(const struct usdt_ctx *ctx, struct usdt_row *row, const __u32 can,
					   const struct usdt_event *event, struct usdt_site_stats *stats)
{
	struct usdt_question *question = (struct usdt_question *)ctx->window;
	const struct usdt_event_arg *args = (const void *)event + sizeof(*event);
	__u32 unread = 0;

	if (!(can & FILLS_TABLE) && !usdt_program()->filtered)
		return true;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < USDT_FILTER_VALUES; i++) {
		__u32 n = usdt_program()->filter_args[i];

		if (i >= usdt_program()->filter_values)
			break;
		asm volatile("" : "+r"(n));
		if (n >= usdt_program()->max_args)
			return false;
		usdt_put_value(question, i, args[n].bits);
		if (args[n].error)
			unread |= 1u << i;
	}
	question->unread = usdt_unknown(unread);
	question->site = event->site;
	question->duration = event->duration;
	return is_wanted(question, row, can, stats);
}

/* Whether something of the record is on a page that is not in memory. */
static __always_inline bool is_paged_out(const struct usdt_event *event)
{
	const struct usdt_event_arg *args = (const void *)event + sizeof(*event);

	for (__u32 i = 0; i < usdt_program()->max_args; i++) {
		if (i >= event->arg_cnt)
			break;
		if (args[i].error == -USDT_EFAULT || args[i].text == -USDT_EFAULT)
			return true;
	}
	return false;
}

/* Waits for the pages a text may be on: its first one, and the next where the text may get there. */
static __always_inline void page_in_text(__u64 text)
{
	const __u64 next = (text | (USDT_PAGE - 1)) + 1;
	char touched;

	bpf_copy_from_user(&touched, 1, (const void *)text);
	if (next - text < usdt_stock()->string_size)
		bpf_copy_from_user(&touched, 1, (const void *)next);
}

/* Waits for the pages of the arguments, each on its own; what their windows had of them is forgotten. */
static __always_inline void page_in(const struct usdt_ctx *ctx, const __u32 can)
{
	struct usdt_ctx *waiting = (struct usdt_ctx *)ctx;
	struct usdt_cursor at = {};
	struct usdt_arg_spec spec;
	__u32 failed;
	__u64 bits;
	int error;

	waiting->sleepable = true;
	for (__u32 i = 0; i < usdt_program()->max_args && usdt_next_spec(ctx, &at, &spec); i++) {
		if (!(can & TAKES_STEPS) || !(spec.kind & USDT_ARG_HAS_STEPS))
			spec.window = 0;
		error = can & TAKES_STEPS ? usdt_value(ctx, &spec, &bits, &failed) : usdt_read(ctx, &spec, &bits);
		if (!error && spec.capture)
			page_in_text(bits);
	}
	if (usdt_program()->windows)
		usdt_init_window(ctx, ctx->window);
	waiting->sleepable = false;
}

/* A hit, or the end of a call whose arguments are still there (`start`: when it began). Where something is paged out,
 * it is waited for, and looked at once more: the verifier goes through each look anew. */
static __always_inline void record_hit(const struct usdt_ctx *ctx, struct usdt_row *row, const __u32 can, __u32 site,
				       struct usdt_site_stats *stats, __u64 start)
{
	struct usdt_event *event;
	__u64 now = 0;

	if (!is_hit_wanted(ctx, row, can, stats, start) || (can & FILLS_TABLE))
		return;
	for (__u32 look = 0; look < 2; look++) {
		event = bpf_ringbuf_reserve(&usdt_events, usdt_stock()->record_size, 0);
		if (!event) {
			count_lost(stats);
			return;
		}
		fill(event, ctx, can, site, usdt_pid_tgid());
		if (!may_wait(can) || look == 1 || !is_paged_out(event))
			break;
		/* Not while the record is held: the consumer cannot pass it, and the process may wait for ever. */
		now = event->ts;
		bpf_ringbuf_discard(event, BPF_RB_NO_WAKEUP);
		page_in(ctx, can);
	}
	if (now)
		event->ts = now;
	if (start) {
		event->duration = event->ts - start;
		event->ts = start;
	}
	bpf_ringbuf_submit(event, wake_flags());
}

/* Sessions of trampolines: arguments are still known at the end, so that the entry leaves nothing but the time. */
static __always_inline bool keeps_arguments(const struct usdt_ctx *ctx)
{
	return usdt_in_slots(ctx) && usdt_program()->moment == (USDT_AT_ENTRY | USDT_AT_RETURN);
}

static __always_inline bool is_session(void)
{
	return usdt_program()->moment == (USDT_AT_ENTRY | USDT_AT_RETURN);
}

/* Calls that begin at one time, by the clock, and are of one thread. Two that are within each other are, where the
 * clock ticks slowly; and any number of them of the idle tasks, which are thread 0 on all processors. */
#define MOST_CALLS_AT_ONCE 8

/* A blank record for the call of a session that begins now; `key` becomes one that no other call has. */
static __always_inline long add_session(struct usdt_call_key *key, const struct usdt_event *blank)
{
	long error = 0;

	key->frame = bpf_ktime_get_ns();
	for (__u32 i = 0; i < MOST_CALLS_AT_ONCE; i++, key->frame++) {
		error = bpf_map_update_elem(&usdt_open_calls, key, blank, BPF_NOEXIST);
		if (error != -USDT_EEXIST)
			break;
	}
	return error;
}

/* The same of a call whose ends are two programs. A record that its stack pointer has left is of a call whose end never
 * came. */
static __always_inline long add_call(struct usdt_call_key *key, const struct usdt_event *blank)
{
	return bpf_map_update_elem(&usdt_open_calls, key, blank, BPF_ANY);
}

/* What tells the call apart whose end or beginning this is; of sessions that begin, not yet. False: nothing does. */
static __always_inline bool find_key(const struct usdt_ctx *ctx, struct usdt_call_key *key)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	key->tid = (__u32)pid_tgid;
	if (is_session()) {
		if (ctx->returns)
			key->frame = *usdt_session_cookie(ctx);
		return true;
	}
	if (usdt_program()->return_by == USDT_RETURN_BY_GOROUTINE_RET) {
		key->tid = pid_tgid >> 32;
		return usdt_goroutine(ctx, &key->goroutine, &key->frame);
	}
	key->frame = usdt_frame(ctx);
	return true;
}

static __always_inline void open_call(const struct usdt_ctx *ctx, const __u32 can, __u32 site,
				      struct usdt_site_stats *stats)
{
	struct usdt_call_key key = {.site = site};
	__u32 zero = 0;
	struct usdt_event *event;
	long error;

	if (keeps_arguments(ctx)) {
		*usdt_session_cookie(ctx) = bpf_ktime_get_ns();
		return;
	}
	event = bpf_map_lookup_elem(&usdt_blank, &zero);
	if (!event || !find_key(ctx, &key))
		return;
	if (is_session()) {
		error = add_session(&key, event);
		*usdt_session_cookie(ctx) = error ? 0 : key.frame;
	} else {
		error = add_call(&key, event);
	}
	if (error) {
		__sync_fetch_and_add(&stats->calls_full, 1);
		return;
	}
	event = bpf_map_lookup_elem(&usdt_open_calls, &key);
	if (!event)
		return;
	for (__u32 look = 0; look < 2; look++) {
		fill(event, ctx, for_records(can), site, usdt_pid_tgid());
		if (!may_wait(can) || look == 1 || !is_paged_out(event))
			break;
		page_in(ctx, can);
	}
}

static __always_inline void close_call(const struct usdt_ctx *ctx, struct usdt_row *row, const __u32 can, __u32 site,
				       struct usdt_site_stats *stats)
{
	struct usdt_call_key key = {.site = site};
	struct usdt_event *event;

	if (!find_key(ctx, &key))
		return;
	if (keeps_arguments(ctx)) {
		if (!key.frame) /* it began before the trace, or did not count */
			return;
		__sync_fetch_and_add(&stats->ended, 1);
		record_hit(ctx, row, can, site, stats, key.frame);
		return;
	}
	event = bpf_map_lookup_elem(&usdt_open_calls, &key);
	if (!event)
		return;
	__sync_fetch_and_add(&stats->ended, 1);
	event->duration = bpf_ktime_get_ns() - event->ts;
	fill_args(event, ctx, for_records(can), true);
	if (is_call_wanted(ctx, row, can, event, stats) &&
	    bpf_ringbuf_output(&usdt_events, event, usdt_stock()->record_size, wake_flags()))
		count_lost(stats);
	bpf_map_delete_elem(&usdt_open_calls, &key);
}

static __always_inline bool is_in_cgroup(void)
{
	for (__u32 i = 0; i < USDT_MAX_CGROUPS && i < usdt_stock()->cgroups; i++) {
		__u64 id = usdt_cgroups[i].id;

		if (id && bpf_get_current_ancestor_cgroup_id(usdt_cgroups[i].level) == id)
			return true;
	}
	return false;
}

/* Whether the process is one of those that are traced. */
static __always_inline bool is_traced(void)
{
	if (usdt_stock()->ancestors.count && !descends())
		return false;
	return !usdt_stock()->cgroups || is_in_cgroup();
}

static __always_inline int trace(const struct usdt_ctx *ctx, const __u32 can)
{
	const bool calls = (can & MAKES_CALLS) && usdt_calls();
	__u32 site = usdt_site(ctx);
	struct usdt_site_stats *stats;
	struct usdt_row row; /* of programs that fill a table */

	if (!is_traced())
		return 0;
	stats = stats_of(site);
	if (!stats || (!ctx->spec && !usdt_is_packed(ctx)))
		return 0;
	if (calls && ctx->returns) {
		close_call(ctx, &row, can, site, stats);
		return 0;
	}
	/* Atomic although per CPU: another task's hit may preempt this one. */
	__sync_fetch_and_add(&stats->hits, 1);
	if (calls)
		open_call(ctx, can, site, stats);
	else
		record_hit(ctx, &row, can, site, stats, 0);
	return 0;
}

USDT_PROGRAM(usdt_trace_hit)
{
	return trace(ctx, 0);
}

USDT_PROGRAM(usdt_trace_hit_memory)
{
	return trace(ctx, COPIES_MEMORY);
}

USDT_PROGRAM(usdt_trace_call)
{
	return trace(ctx, MAKES_CALLS);
}

USDT_PROGRAM(usdt_trace_call_memory)
{
	return trace(ctx, MAKES_CALLS | COPIES_MEMORY);
}

USDT_PROGRAM(usdt_trace_hit_steps)
{
	return trace(ctx, COPIES_MEMORY | TAKES_STEPS);
}

USDT_PROGRAM(usdt_trace_call_steps)
{
	return trace(ctx, MAKES_CALLS | COPIES_MEMORY | TAKES_STEPS);
}

USDT_PROGRAM(usdt_trace_table_hit)
{
	return trace(ctx, COPIES_MEMORY | FILLS_TABLE);
}

USDT_PROGRAM(usdt_trace_table_hit_extremes)
{
	return trace(ctx, COPIES_MEMORY | FILLS_TABLE | HAS_EXTREMES);
}

USDT_PROGRAM(usdt_trace_table_call)
{
	return trace(ctx, MAKES_CALLS | COPIES_MEMORY | TAKES_STEPS | FILLS_TABLE);
}

USDT_PROGRAM(usdt_trace_table_call_extremes)
{
	return trace(ctx, MAKES_CALLS | COPIES_MEMORY | TAKES_STEPS | FILLS_TABLE | HAS_EXTREMES);
}

/* Hits are counted, and nothing else: no argument is read, so that sites of all specs share the program. */
USDT_PROGRAM(usdt_trace_count)
{
	struct usdt_site_stats *stats;

	if (!is_traced())
		return 0;
	if (usdt_calls() && ctx->returns)
		return 0;
	stats = stats_of(usdt_site(ctx));
	if (stats)
		__sync_fetch_and_add(&stats->hits, 1);
	return 0;
}

/* The same, of hits that a filter lets pass. */
USDT_PROGRAM(usdt_trace_count_where)
{
	struct usdt_site_stats *stats;

	if (!is_traced())
		return 0;
	if (usdt_calls() && ctx->returns)
		return 0;
	stats = stats_of(usdt_site(ctx));
	if (!stats)
		return 0;
	__sync_fetch_and_add(&stats->hits, 1);
	is_hit_wanted(ctx, NULL, COPIES_MEMORY, stats, 0);
	return 0;
}
