/* SPDX-License-Identifier: BSD-2-Clause */
/* `deep N`: narrow(N) calls itself down to narrow(0), which has the probe; then wide(N), whose frames have a kilobyte.
 * `deep N HITS`: the first alone, HITS times in narrow(0), and prints how many ns each took. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>

static int hits = 1;
static volatile unsigned long sink;

__attribute__((noinline)) static unsigned long narrow(unsigned n) {
  if (n == 0) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < hits; ++i) {
      sink++;
      STAP_PROBE(deep, bottom);
      sink++;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    if (hits > 1) printf("%lld\n", ((to.tv_sec - from.tv_sec) * 1000000000ll + to.tv_nsec - from.tv_nsec) / hits);
    return sink;
  }
  sink += narrow(n - 1);
  return sink + 1;
}

__attribute__((noinline)) static unsigned long wide(unsigned n) {
  volatile char room[1024];
  room[n % sizeof(room)] = 1;
  sink += n == 0 ? narrow(0) : wide(n - 1);
  return sink + (unsigned long)room[n % sizeof(room)];
}

int main(int argc, char** argv) {
  if (argc > 2) hits = atoi(argv[2]);
  sink += narrow((unsigned)atoi(argv[1]));
  if (argc == 2) sink += wide((unsigned)atoi(argv[1]));
  return argc > 99;
}
