// SPDX-License-Identifier: BSD-2-Clause
// Works, and passes a probe at intervals of work; says what its own work took, and how often somebody was listening.
// usage: overhead WORK HITS [THREADS]: WORK rounds of arithmetic before each hit; - for HITS: until it is killed
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

__attribute__((section(".probes"), used)) volatile unsigned short overhead_hit_semaphore;

static long work, hits;
static _Atomic long listened;

struct half {
  double value;
};
__attribute__((noinline)) void take(struct half* half) { __asm__ volatile("" ::"r"(half) : "memory"); }

static void* run(void* argument) {
  struct half half = {0.5};
  volatile unsigned long x = 1;
  long up = 0;
  (void)argument;
  for (long i = 0; hits < 0 || i < hits; i++) {
    for (long k = 0; k < work; k++) x = x * 3 + (unsigned long)k;
    up += overhead_hit_semaphore > 0;
    DTRACE_PROBE2(overhead, hit, i, i % 10);
    take(&half);
  }
  listened += up;
  return NULL;
}

int main(int argc, char** argv) {
  const int threads = argc > 3 ? atoi(argv[3]) : 1;
  pthread_t all[16];
  struct timespec time;
  work = atol(argv[1]);
  hits = argv[2][0] == '-' ? -1 : atol(argv[2]);
  puts("up");
  fflush(stdout);
  for (int i = 0; i < threads; i++) pthread_create(&all[i], NULL, run, NULL);
  for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  printf("%.6f %ld\n", (double)time.tv_sec + (double)time.tv_nsec / 1e9, listened);
  return 0;
}
