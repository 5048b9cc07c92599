// SPDX-License-Identifier: BSD-2-Clause
// Threads that pass probes in a rhythm of their own, and say how often and with what.
// usage: guards THREADS HITS [PAUSE_US EVERY]: each thread hits a probe and calls a function so many times; after EVERY
// hits it sleeps so long
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>
#include <unistd.h>

static long number, pause_us, every = 1;

struct told {
  long thread, sum, returned;
};

__attribute__((noinline)) long serve(long request) {
  __asm__ volatile("" : "+r"(request));
  return request % 7 + 1;
}

static void* work(void* argument) {
  struct told* told = argument;
  for (long i = 0; i < number; i++) {
    // Every hundredth hit has the same value, and says that it is the last of a hundred.
    DTRACE_PROBE3(guards, work, i, told->thread, i % 100);
    told->sum += i % 100;
    told->returned += serve(i);
    if (pause_us && (i + 1) % every == 0) usleep((useconds_t)pause_us);
  }
  return NULL;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  const int threads = atoi(argv[1]);
  pthread_t all[64];
  struct told told[64] = {0};
  number = atol(argv[2]);
  if (argc > 4) {
    pause_us = atol(argv[3]);
    every = atol(argv[4]);
  }
  const double began = now();
  for (int i = 0; i < threads; i++) {
    told[i].thread = i;
    pthread_create(&all[i], NULL, work, &told[i]);
  }
  for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
  for (int i = 0; i < threads; i++) printf("%ld %ld %ld %ld\n", told[i].thread, number, told[i].sum, told[i].returned);
  printf("%.6f\n", now() - began);
  return 0;
}
