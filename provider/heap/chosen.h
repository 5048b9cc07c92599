/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The allocations that were reported and are not free yet: a set of addresses in memory of fixed size, without locks.
 * Nobody asks about an address but who has the allocation, so that no two threads add or remove the same one at once;
 * different ones may come at any time, from signal handlers, too.
 */
#ifndef USDT_HEAP_CHOSEN_H
#define USDT_HEAP_CHOSEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  HEAP_SLOTS_OF_BUCKET = 8, /* addresses of a bucket are in one line of the processor's cache */
  HEAP_BUCKETS = 1 << 13,
};

struct heap_bucket {
  uintptr_t addresses[HEAP_SLOTS_OF_BUCKET]; /* 0: free */
  size_t sizes[HEAP_SLOTS_OF_BUCKET];
};

/* The kernel fills these pages with zeroes in a child that is forked: it has reported nothing. */
struct heap_chosen {
  struct heap_bucket buckets[HEAP_BUCKETS];
  uint64_t process;  /* a random number of this process; 0: it has none yet */
  uint64_t count;    /* of addresses */
  uint64_t left_out; /* how many found no room */
};

/* Maps such memory. Null: there is none. */
struct heap_chosen* heap_map_chosen(void);
void heap_unmap_chosen(struct heap_chosen* chosen);

/* Returns the number of this process, which is not 0. */
uint64_t heap_process(struct heap_chosen* chosen);

/* Adds the address of an allocation. Returns false if there is no room for it, which is counted. */
bool heap_add(struct heap_chosen* chosen, const void* address, size_t size);

/* Removes an address. Returns whether it was there; then its size is in `size`. */
bool heap_remove(struct heap_chosen* chosen, const void* address, size_t* size);

#ifdef __cplusplus
}
#endif

#endif
