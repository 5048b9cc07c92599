/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The rows of a table, which hits are added to instead of becoming records. */
#ifndef USDT_TRACE_ROWS_H
#define USDT_TRACE_ROWS_H

#include <usdt/bpf/usdt.bpf.h>
#include <usdt/bpf/event.h>
#include "../stock.h"
#include "abilities.h"
#include "counts.h"

/* The table's rows, of which the loader gives the size of the keys. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u64));
	__uint(value_size, sizeof(struct usdt_tally));
} usdt_rows SEC(".maps");

/* The keys that rows have, with 0 for their part: as many as there may be rows, in whatever parts. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u64));
	__uint(value_size, sizeof(__u64));
} usdt_row_keys SEC(".maps");

/* The initial value of a row with a sum of reals, which the stack has no room for. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct usdt_tally));
} usdt_blank_row SEC(".maps");

/* Rows that were made: with stacks among their keys user space looks at new ones soon, while their processes live. */
__u64 usdt_rows_made = 0;

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

static __always_inline __u64 own_part(void)
{
	return bpf_get_smp_processor_id() & usdt_stock()->table.part_mask;
}

/* Whether there may be a row with these keys, which another part may have already. */
static __always_inline bool has_room(struct usdt_row *row)
{
	long made;

	row->part = 0;
	made = update_elem(&usdt_row_keys, row, row, BPF_NOEXIST);
	row->part = own_part();
	return !made || made == -USDT_EEXIST;
}

/* Adds a real, of which `order` is the number that orders it, to the exact sum behind a tally. */
static __always_inline void add_real(struct usdt_tally *tally, __u64 order)
{
	const __u64 pieces = usdt_stock()->table.sum_pieces;
	const bool narrow = pieces == USDT_SUM_PIECES32, negative = !(order >> 63);
	const __u32 fraction = narrow ? 23 : 52; /* bits of a mantissa behind its point */
	const __u64 most = (1ull << USDT_SUM_BITS) - 1;
	__u64 bits = ((negative ? ~order : order) & ~(1ull << 63)) >> (narrow ? 32 : 0);
	__u64 exponent = bits >> fraction, mantissa = bits & ((1ull << fraction) - 1), at, shift;
	__s64 *sum = (void *)tally + sizeof(*tally);
	__s64 low, middle, high;

	if (exponent == (narrow ? 0xff : 0x7ff)) {
		__sync_fetch_and_add(&sum[pieces + negative], 1);
		return;
	}
	if (exponent) { /* 0: the same, without the bit before the point */
		mantissa |= 1ull << fraction;
		exponent--;
	}
	at = exponent * 2521 >> 16; /* of what is below 2048 a 26th */
	shift = exponent - at * USDT_SUM_BITS;
	low = mantissa << shift & most;
	middle = mantissa >> (USDT_SUM_BITS - shift) & most;
	high = mantissa >> (2 * USDT_SUM_BITS - shift);
	/* As in capture() of texts.h. */
	asm volatile("" : "+r"(at));
	if (at > pieces - 3)
		return;
	sum += at;
	__sync_fetch_and_add(&sum[0], negative ? -low : low);
	__sync_fetch_and_add(&sum[1], negative ? -middle : middle);
	__sync_fetch_and_add(&sum[2], negative ? -high : high);
}

/* Makes a row, from a tally where the question was or from the blank one; there may be one meanwhile. */
static __always_inline long make_row(struct usdt_row *row, struct usdt_tally *first)
{
	const void *blank = first;

	if (usdt_stock()->table.sum_pieces) {
		first->count = 0;
		blank = bpf_map_lookup_elem(&usdt_blank_row, first);
		if (!blank)
			return -USDT_ENOENT;
	}
	return update_elem(&usdt_rows, row, blank, BPF_NOEXIST);
}

/* Adds a hit to its row, which its first hit makes. */
static __always_inline void tally(struct usdt_row *row, struct usdt_question *question, const __u32 can,
				  struct usdt_site_stats *stats)
{
	const __u64 bias = usdt_stock()->table.value_bias, value = question->values[0], biased = value ^ bias;
	const __u64 piece = (1ull << USDT_TALLY_BITS) - 1, low = value & piece,
		    middle = value >> USDT_TALLY_BITS & piece;
	const __u64 high = bias ? value >> 2 * USDT_TALLY_BITS : (__u64)((__s64)value >> 2 * USDT_TALLY_BITS);
	struct usdt_tally *first = (struct usdt_tally *)question, *known;

	row->part = own_part();
	known = bpf_map_lookup_elem(&usdt_rows, row);
	if (!known) {
		if (!has_room(row)) {
			count_unrowed(stats);
			return;
		}
		*first = (struct usdt_tally){1, low, middle, high, biased, biased};
		if (!make_row(row, first)) {
			if (can & TAKES_STACKS)
				__sync_fetch_and_add(&usdt_rows_made, 1);
			if (!usdt_stock()->table.sum_pieces)
				return;
		}
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
	if (usdt_stock()->table.sum_pieces) {
		add_real(known, value);
		return;
	}
	__sync_fetch_and_add(&known->low, low);
	__sync_fetch_and_add(&known->middle, middle);
	__sync_fetch_and_add(&known->high, high);
}

#endif /* USDT_TRACE_ROWS_H */
