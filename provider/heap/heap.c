/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libusdt-heap.so: the allocator's functions with probes, for LD_PRELOAD (docs/heap.md).
 *
 *   otel_memory:alloc(user_ptr, size, weighted_bytes)   an allocation that was chosen (sampler.h)
 *   otel_memory:free(ptr)                               it is about to be free; of no other allocation
 *   usdt_heap:left_out(size, weighted_bytes, total)     one that was chosen and found no room among those that are
 *                                                       reported, in place of `alloc`; how many there were
 *
 * While nobody traces `alloc`, each function compares a counter with 0 and jumps to the next allocator's. Nothing here
 * locks or allocates: signal handlers, children of fork() and the dynamic linker may call all of it at any time.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <usdt/probe.h>

#include "chosen.h"
#include "next.h"
#include "sampler.h"

USDT_PROBE_DECLARE(otel_memory, alloc, "user_ptr, size[bytes], weighted_bytes[bytes]");
USDT_PROBE_DECLARE(otel_memory, free, "ptr");
USDT_PROBE_DECLARE(usdt_heap, left_out, "size[bytes], weighted_bytes[bytes], total:count");

#define EXPORTED __attribute__((visibility("default")))
/* Functions of their own, so that others are short, and end in a jump. */
#define SELDOM __attribute__((noinline, cold))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)

/* Null until the first allocation is traced. */
static struct heap_chosen* chosen;
static __thread struct heap_sampler sampler;
static uint64_t mean = HEAP_USUAL_MEAN;

/* Reads the variable before there are threads, which may change the environment. What is traced before that, by
 * constructors of other libraries, is chosen by the usual mean. */
__attribute__((constructor)) static void read_mean(void) {
  const char* text = getenv("USDT_HEAP_MEAN");
  uint64_t wanted;
  if (text != NULL && heap_read_mean(text, &wanted) == 0) __atomic_store_n(&mean, wanted, __ATOMIC_RELAXED);
}

static bool is_traced(void) { return USDT_PROBE_ENABLED(otel_memory, alloc); }

/* Whether something was reported and not freed: what is freed has to be looked up. */
static bool has_chosen(void) { return __atomic_load_n(&chosen, __ATOMIC_ACQUIRE) != NULL; }

static struct heap_chosen* map_once(void) {
  struct heap_chosen* known = __atomic_load_n(&chosen, __ATOMIC_ACQUIRE);
  if (LIKELY(known != NULL)) return known;
  struct heap_chosen* mapped = heap_map_chosen();
  if (mapped == NULL) return NULL;
  if (__atomic_compare_exchange_n(&chosen, &known, mapped, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return mapped;
  heap_unmap_chosen(mapped);
  return known;
}

/* Reports an allocation, before anybody else can know its address. */
SELDOM static void report(struct heap_chosen* among, void* pointer, size_t size) {
  const int before = errno;
  const uint64_t weight = heap_weight(__atomic_load_n(&mean, __ATOMIC_RELAXED), size);
  if (heap_add(among, pointer, size)) {
    USDT_PROBE_STUB(otel_memory, alloc, pointer, size, weight);
  } else {
    const uint64_t total = __atomic_load_n(&among->left_out, __ATOMIC_RELAXED);
    USDT_PROBE_STUB(usdt_heap, left_out, size, weight, total);
  }
  errno = before;
}

/* Chooses whether an allocation that was made is reported. Without memory for our own account none is. */
static void consider(void* pointer, size_t size) {
  if (pointer == NULL || size == 0) return;
  const int before = errno;
  struct heap_chosen* among = map_once();
  const bool is_chosen =
      among != NULL && heap_choose(&sampler, heap_process(among), __atomic_load_n(&mean, __ATOMIC_RELAXED), size);
  errno = before;
  if (is_chosen) report(among, pointer, size);
}

/* Says that an allocation is free, if it was reported, before another thread can get its address. */
static bool forget(void* pointer, size_t* size) {
  if (pointer == NULL || !heap_remove(__atomic_load_n(&chosen, __ATOMIC_ACQUIRE), pointer, size)) return false;
  USDT_PROBE_STUB(otel_memory, free, pointer);
  return true;
}

/* ---- While it is traced ------------------------------------------------------------------------------------------ */

SELDOM static void* traced_malloc(size_t size) {
  void* made = heap_next.malloc(size);
  consider(made, size);
  return made;
}

SELDOM static void* traced_calloc(size_t count, size_t size) {
  void* made = heap_next.calloc(count, size);
  consider(made, count * size); /* which fits, or nothing was made */
  return made;
}

SELDOM static void* traced_memalign(size_t alignment, size_t size) {
  void* made = heap_next.memalign(alignment, size);
  consider(made, size);
  return made;
}

SELDOM static void* traced_aligned_alloc(size_t alignment, size_t size) {
  void* made = heap_next.aligned_alloc(alignment, size);
  consider(made, size);
  return made;
}

SELDOM static int traced_posix_memalign(void** pointer, size_t alignment, size_t size) {
  const int failed = heap_next.posix_memalign(pointer, alignment, size);
  if (failed == 0) consider(*pointer, size);
  return failed;
}

SELDOM static void looked_up_free(void* pointer) {
  size_t size;
  forget(pointer, &size);
  heap_next.free(pointer);
}

/* Reports it as freed and allocated anew: its address may be another thread's as soon as it has moved. If there was no
 * memory it is still there, and is reported once more. */
SELDOM static void* looked_up_realloc(void* pointer, size_t size) {
  size_t before = 0;
  const bool was_chosen = has_chosen() && forget(pointer, &before);
  const int error = errno;
  errno = 0;
  void* made = heap_next.realloc(pointer, size);
  const bool failed = made == NULL && (size > 0 || errno != 0); /* of 0 bytes, NULL may mean that it is freed */
  if (errno == 0) errno = error;
  if (failed && was_chosen) report(__atomic_load_n(&chosen, __ATOMIC_ACQUIRE), pointer, before);
  if (made != NULL && is_traced()) consider(made, size);
  return made;
}

/* ---- The functions of the C library ------------------------------------------------------------------------------ */

EXPORTED void* malloc(size_t size) { return LIKELY(!is_traced()) ? heap_next.malloc(size) : traced_malloc(size); }

EXPORTED void* calloc(size_t count, size_t size) {
  return LIKELY(!is_traced()) ? heap_next.calloc(count, size) : traced_calloc(count, size);
}

EXPORTED void free(void* pointer) {
  if (LIKELY(!has_chosen())) return heap_next.free(pointer);
  looked_up_free(pointer);
}

EXPORTED void* realloc(void* pointer, size_t size) {
  if (LIKELY(!has_chosen() && !is_traced())) return heap_next.realloc(pointer, size);
  return looked_up_realloc(pointer, size);
}

EXPORTED void* reallocarray(void* pointer, size_t count, size_t size) {
  size_t bytes;
  if (!__builtin_mul_overflow(count, size, &bytes)) return realloc(pointer, bytes);
  errno = ENOMEM;
  return NULL;
}

EXPORTED void* memalign(size_t alignment, size_t size) {
  return LIKELY(!is_traced()) ? heap_next.memalign(alignment, size) : traced_memalign(alignment, size);
}

EXPORTED void* aligned_alloc(size_t alignment, size_t size) {
  return LIKELY(!is_traced()) ? heap_next.aligned_alloc(alignment, size) : traced_aligned_alloc(alignment, size);
}

EXPORTED int posix_memalign(void** pointer, size_t alignment, size_t size) {
  return LIKELY(!is_traced()) ? heap_next.posix_memalign(pointer, alignment, size)
                              : traced_posix_memalign(pointer, alignment, size);
}

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

EXPORTED void* valloc(size_t size) { return memalign(page_size(), size); }

EXPORTED void* pvalloc(size_t size) {
  const size_t page = page_size();
  if (size <= SIZE_MAX - page) return memalign(page, (size + page - 1) / page * page);
  errno = ENOMEM;
  return NULL;
}

/* Of C23: who has the size may say so. */
EXPORTED void free_sized(void* pointer, size_t size) {
  (void)size;
  free(pointer);
}

EXPORTED void free_aligned_sized(void* pointer, size_t alignment, size_t size) {
  (void)alignment, (void)size;
  free(pointer);
}
