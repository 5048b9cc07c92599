/* SPDX-License-Identifier: BSD-2-Clause */
/* The first call comes early: the dynamic linker itself allocates, before any constructor has run. */
#include "next.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Looking up symbols may allocate (dlsym() did before glibc 2.34, for its message). That memory is here, and is never
 * given back. */
enum { ROOM = 32 << 10, ALIGNMENT = 16 };
struct piece {
  _Alignas(ALIGNMENT) size_t size;
};
static _Alignas(ALIGNMENT) unsigned char room[ROOM];
static size_t taken;
static __thread bool looks_up; /* this thread, just now */

static bool is_in_room(const void* pointer) {
  return (uintptr_t)pointer - (uintptr_t)room < sizeof(room); /* below it the difference is huge */
}

static void* take_room(size_t alignment, size_t size) {
  if (size > ROOM || alignment > ROOM) goto none;
  if (alignment < ALIGNMENT) alignment = ALIGNMENT;
  const size_t wanted = sizeof(struct piece) + alignment + (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  const size_t at = __atomic_fetch_add(&taken, wanted, __ATOMIC_RELAXED);
  if (at > ROOM || wanted > ROOM - at) goto none;
  uintptr_t start = (uintptr_t)room + at + sizeof(struct piece);
  start = (start + alignment - 1) / alignment * alignment;
  ((struct piece*)start)[-1].size = size;
  return (void*)start;
none:
  errno = ENOMEM;
  return NULL;
}

/* What was in our room stays there; all other memory is the next allocator's, which may be looked for just now. */
static void (*next_free)(void* pointer);
static void* (*next_realloc)(void* pointer, size_t size);

static void free_any(void* pointer) {
  if (!is_in_room(pointer) && next_free != NULL) next_free(pointer);
}

static void* realloc_any(void* pointer, size_t size) {
  if (!is_in_room(pointer)) return next_realloc(pointer, size);
  void* moved = heap_next.malloc(size);
  if (moved == NULL) return NULL;
  const size_t before = ((const struct piece*)pointer)[-1].size;
  return memcpy(moved, pointer, before < size ? before : size);
}

static void* find(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found != NULL) return found;
  static const char message[] = "libusdt-heap: there is no allocator behind this one\n";
  if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0) abort();
  abort();
}

/* Threads that come here at once find the same. */
static void look_up(void) {
  const int before = errno;
  looks_up = true;
  struct heap_next found;
  *(void**)&found.malloc = find("malloc");
  *(void**)&found.calloc = find("calloc");
  *(void**)&next_realloc = find("realloc");
  *(void**)&next_free = find("free");
  *(void**)&found.memalign = find("memalign");
  *(void**)&found.aligned_alloc = find("aligned_alloc");
  *(void**)&found.posix_memalign = find("posix_memalign");
  const bool used_room = __atomic_load_n(&taken, __ATOMIC_RELAXED) > 0;
  found.free = used_room ? free_any : next_free;
  found.realloc = used_room ? realloc_any : next_realloc;
  heap_next = found;
  looks_up = false;
  errno = before;
}

static void* first_malloc(size_t size) {
  if (looks_up) return take_room(ALIGNMENT, size);
  look_up();
  return heap_next.malloc(size);
}

static void* first_calloc(size_t count, size_t size) {
  size_t bytes;
  if (looks_up) return __builtin_mul_overflow(count, size, &bytes) ? NULL : take_room(ALIGNMENT, bytes);
  look_up();
  return heap_next.calloc(count, size);
}

static void* first_realloc(void* pointer, size_t size) {
  if (!looks_up) {
    look_up();
    return heap_next.realloc(pointer, size);
  }
  void* moved = take_room(ALIGNMENT, size);
  if (moved == NULL || pointer == NULL) return moved;
  const size_t before = ((const struct piece*)pointer)[-1].size;
  return memcpy(moved, pointer, before < size ? before : size);
}

static void first_free(void* pointer) {
  if (pointer == NULL || looks_up) return;
  look_up();
  heap_next.free(pointer);
}

static void* first_memalign(size_t alignment, size_t size) {
  if (looks_up) return take_room(alignment, size);
  look_up();
  return heap_next.memalign(alignment, size);
}

static void* first_aligned_alloc(size_t alignment, size_t size) {
  if (looks_up) return take_room(alignment, size);
  look_up();
  return heap_next.aligned_alloc(alignment, size);
}

static int first_posix_memalign(void** pointer, size_t alignment, size_t size) {
  if (looks_up) return (*pointer = take_room(alignment, size)) == NULL ? ENOMEM : 0;
  look_up();
  return heap_next.posix_memalign(pointer, alignment, size);
}

struct heap_next heap_next = {
    .malloc = first_malloc,
    .calloc = first_calloc,
    .realloc = first_realloc,
    .free = first_free,
    .memalign = first_memalign,
    .aligned_alloc = first_aligned_alloc,
    .posix_memalign = first_posix_memalign,
};
