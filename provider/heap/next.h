/* SPDX-License-Identifier: BSD-2-Clause */
/* The allocator that the program would have without us: the next one in the order in which symbols are looked up. */
#ifndef USDT_HEAP_NEXT_H
#define USDT_HEAP_NEXT_H

#include <stddef.h>

struct heap_next {
  void* (*malloc)(size_t size);
  void* (*calloc)(size_t count, size_t size);
  void* (*realloc)(void* pointer, size_t size);
  void (*free)(void* pointer);
  void* (*memalign)(size_t alignment, size_t size);
  void* (*aligned_alloc)(size_t alignment, size_t size);
  int (*posix_memalign)(void** pointer, size_t alignment, size_t size);
};

/* May be called at any time: the first call, whichever it is, finds them all. */
extern struct heap_next heap_next;

#endif
