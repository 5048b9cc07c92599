// SPDX-License-Identifier: BSD-2-Clause
// An allocator for the place behind libusdt-heap.so: without locks, so that signal handlers may call it at any time.
// Memory comes from one region, and blocks of a size that was freed are used again.
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { CLASSES = 40, SPARE = 64, ALIGNMENT = 16 };
static _Alignas(4096) unsigned char region[1ul << 30];
static size_t taken;
static void* spare[CLASSES][SPARE]; /* freed blocks of 16 << class bytes */

struct head {
  size_t size, class;
};

void* memalign(size_t alignment, size_t size) {
  size_t class = 0;
  while (class < CLASSES && (size_t)16 << class < size) ++class;
  if (class == CLASSES || size > sizeof(region)) goto none;
  for (int n = 0; alignment <= ALIGNMENT && n < SPARE; ++n) {
    void* found = __atomic_exchange_n(&spare[class][n], NULL, __ATOMIC_ACQ_REL);
    if (found == NULL) continue;
    ((struct head*)found)[-1].size = size;
    return found;
  }
  if (alignment < ALIGNMENT) alignment = ALIGNMENT;
  const size_t at =
      __atomic_fetch_add(&taken, ((size_t)16 << class) + sizeof(struct head) + alignment, __ATOMIC_RELAXED);
  if (at > sizeof(region) - ((size_t)16 << class) - sizeof(struct head) - alignment) goto none;
  const uintptr_t start = ((uintptr_t)region + at + sizeof(struct head) + alignment - 1) / alignment * alignment;
  ((struct head*)start)[-1] = (struct head){size, class};
  return (void*)start;
none:
  errno = ENOMEM;
  return NULL;
}

void* malloc(size_t size) { return memalign(ALIGNMENT, size); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** to, size_t alignment, size_t size) { return (*to = memalign(alignment, size)) ? 0 : ENOMEM; }

void free(void* pointer) {
  if (pointer == NULL) return;
  const size_t class = ((struct head*)pointer)[-1].class;
  for (int n = 0; n < SPARE; ++n) {
    void* none = NULL;
    if (__atomic_compare_exchange_n(&spare[class][n], &none, pointer, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  }
}

void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  void* pointer = malloc(bytes);
  return pointer == NULL ? NULL : memset(pointer, 0, bytes);
}

void* realloc(void* pointer, size_t size) {
  void* moved = malloc(size);
  if (moved == NULL || pointer == NULL) return moved;
  const size_t before = ((struct head*)pointer)[-1].size;
  memcpy(moved, pointer, before < size ? before : size);
  free(pointer);
  return moved;
}
