/* SPDX-License-Identifier: BSD-2-Clause */
/* Times pairs of malloc() and free(): ./loop PAIRS SIZE, which waits for a line first. Several are live at a time, as
 * in programs. Prints the nanoseconds of processor time that a pair took, the least of five times. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LIVE = 16, TIMES = 5 };

static double pairs(long count, size_t size) {
  void* live[LIVE] = {0};
  struct timespec from, to;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
  for (long n = 0; n < count; ++n) {
    void** place = &live[n % LIVE];
    free(*place);
    *place = malloc(size);
    __asm__ volatile("" : : "r"(*place) : "memory");
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
  for (int n = 0; n < LIVE; ++n) free(live[n]);
  return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / (double)count;
}

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  const long count = atol(argv[1]);
  const size_t size = (size_t)atol(argv[2]);
  puts("ready");
  fflush(stdout);
  if (getchar() == EOF) return 1;
  double least = pairs(count, size);
  for (int n = 1; n < TIMES; ++n) {
    const double took = pairs(count, size);
    if (took < least) least = took;
  }
  printf("%.3f\n", least);
  return 0;
}
