/* SPDX-License-Identifier: BSD-2-Clause */
#include "chosen.h"

#include <sys/mman.h>

#include "sampler.h"

struct heap_chosen* heap_map_chosen(void) {
  void* memory = mmap(NULL, sizeof(struct heap_chosen), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  if (madvise(memory, sizeof(struct heap_chosen), MADV_WIPEONFORK) == 0) return memory;
  heap_unmap_chosen(memory); /* before Linux 4.14, where nothing of ours traces */
  return NULL;
}

void heap_unmap_chosen(struct heap_chosen* chosen) { munmap(chosen, sizeof(struct heap_chosen)); }

uint64_t heap_process(struct heap_chosen* chosen) {
  uint64_t known = __atomic_load_n(&chosen->process, __ATOMIC_RELAXED);
  if (known != 0) return known;
  const uint64_t made = heap_random();
  return __atomic_compare_exchange_n(&chosen->process, &known, made, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ? made
                                                                                                                : known;
}

/* An address may be in either of two buckets, and goes where there is more room: then buckets fill so evenly that
 * hardly one is full before half of all slots are taken (Azar, Broder, Karlin and Upfal, "Balanced allocations", 1999).
 * No slot depends on another one, so that those of allocations that are freed are simply empty. */
struct pair {
  struct heap_bucket *first, *second;
};

static struct pair buckets_of(struct heap_chosen* chosen, uintptr_t address) {
  uint64_t hash = (uint64_t)address * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 32;
  return (struct pair){&chosen->buckets[hash % HEAP_BUCKETS], &chosen->buckets[(hash >> 16) % HEAP_BUCKETS]};
}

static unsigned free_slots(const struct heap_bucket* bucket) {
  unsigned count = 0;
  for (unsigned n = 0; n < HEAP_SLOTS_OF_BUCKET; ++n)
    count += __atomic_load_n(&bucket->addresses[n], __ATOMIC_RELAXED) == 0;
  return count;
}

static bool put(struct heap_bucket* bucket, uintptr_t address, size_t size) {
  for (unsigned n = 0; n < HEAP_SLOTS_OF_BUCKET; ++n) {
    uintptr_t none = 0;
    if (!__atomic_compare_exchange_n(&bucket->addresses[n], &none, address, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    /* Whoever frees the allocation gets its address from us, after this. */
    bucket->sizes[n] = size;
    return true;
  }
  return false;
}

static bool take(struct heap_bucket* bucket, uintptr_t address, size_t* size) {
  for (unsigned n = 0; n < HEAP_SLOTS_OF_BUCKET; ++n) {
    if (__atomic_load_n(&bucket->addresses[n], __ATOMIC_RELAXED) != address) continue;
    *size = bucket->sizes[n];
    /* Another thread that takes the slot writes a size after this, not before. */
    __atomic_store_n(&bucket->addresses[n], 0, __ATOMIC_RELEASE);
    return true;
  }
  return false;
}

bool heap_add(struct heap_chosen* chosen, const void* pointer, size_t size) {
  const uintptr_t address = (uintptr_t)pointer;
  const struct pair of = buckets_of(chosen, address);
  const bool first = free_slots(of.first) >= free_slots(of.second);
  if (put(first ? of.first : of.second, address, size) || put(first ? of.second : of.first, address, size)) {
    __atomic_fetch_add(&chosen->count, 1, __ATOMIC_RELAXED);
    return true;
  }
  __atomic_fetch_add(&chosen->left_out, 1, __ATOMIC_RELAXED);
  return false;
}

bool heap_remove(struct heap_chosen* chosen, const void* pointer, size_t* size) {
  if (__atomic_load_n(&chosen->count, __ATOMIC_RELAXED) == 0) return false;
  const uintptr_t address = (uintptr_t)pointer;
  const struct pair of = buckets_of(chosen, address);
  if (!take(of.first, address, size) && !take(of.second, address, size)) return false;
  __atomic_fetch_sub(&chosen->count, 1, __ATOMIC_RELAXED);
  return true;
}
