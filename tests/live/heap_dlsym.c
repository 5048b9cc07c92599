// SPDX-License-Identifier: BSD-2-Clause
// A dlsym() that allocates, as glibc's did before 2.34, and keeps some of it for later.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static char* kept;

void* dlsym(void* handle, const char* name) {
  char* copy = calloc(1, 100);
  copy = realloc(strcpy(copy, name), 300);
  void* aligned = memalign(64, 100);
  if ((unsigned long)aligned % 64 != 0 || strcmp(copy, name) != 0) abort();
  free(aligned);
  free(kept);
  kept = copy;
#ifdef __aarch64__
  return dlvsym(handle, copy, "GLIBC_2.17");
#else
  return dlvsym(handle, copy, strcmp(copy, "aligned_alloc") == 0 ? "GLIBC_2.16" : "GLIBC_2.2.5");
#endif
}

__attribute__((destructor)) static void grow(void) { free(kept = realloc(kept, 100000)); }
