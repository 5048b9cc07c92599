// SPDX-License-Identifier: BSD-2-Clause
// A process that allocates: "bystander SLICES" prints how many nanoseconds a slice of allocations took at best, and the
// first bytes of malloc() as they are in its memory, where a breakpoint would be. The best of many slices, each far
// shorter than a time slice of the scheduler, is the same on a busy machine.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kAllocations = 1000 };

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int64_t allocate(void) {
  const int64_t began = now();
  for (int i = 0; i < kAllocations; ++i) {
    void* volatile memory = malloc(100);
    free(memory);
  }
  return now() - began;
}

int main(int argc, char** argv) {
  const int slices = argc > 1 ? atoi(argv[1]) : 100;
  int64_t best = INT64_MAX;
  for (int i = 0; i < slices; ++i) {
    const int64_t took = allocate();
    if (took < best) best = took;
  }
  void* (*volatile function)(size_t) = malloc;
  uint64_t bytes = 0;
  memcpy(&bytes, (const void*)(uintptr_t)function, sizeof(bytes));
  printf("%lld %llx\n", (long long)best, (unsigned long long)bytes);
  return 0;
}
