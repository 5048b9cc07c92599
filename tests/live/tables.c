// SPDX-License-Identifier: BSD-2-Clause
// Threads that hit a probe as fast as they can, and know exactly with what. usage: tables THREADS HITS [reals]
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

static long hits;

struct told {
  int number;
  __int128 sum;
  int64_t smallest, largest;
};

struct real {
  int thread;
  double value;
};
__attribute__((noinline)) int take_real(struct real* real) {
  __asm__ volatile("" : "+r"(real) : : "memory");
  return real->thread;
}

/// What is large is taken away again.
static void* work_with_reals(void* argument) {
  for (long i = 0; i < hits; i++) {
    const double large = i % 4 < 2 ? 1e300 : 1e-300;
    struct real real = {((struct told*)argument)->number, (i % 4 == 1 ? -1.0 : 1.0) * large * (double)(i / 4 % 1000)};
    take_real(&real);
  }
  return NULL;
}

static void* work(void* argument) {
  struct told* told = argument;
  uint64_t state = 88172645463325252u + (uint64_t)told->number * 7919;
  told->smallest = INT64_MAX;
  told->largest = INT64_MIN;
  for (long i = 0; i < hits; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const int64_t value = (int64_t)state >> (i % 64);
    told->sum += value;
    if (value < told->smallest) told->smallest = value;
    if (value > told->largest) told->largest = value;
    DTRACE_PROBE2(tables, value, told->number, value);
  }
  return NULL;
}

static void print_wide(__int128 value) {
  if (value < 0) {
    putchar('-');
    value = -value;
  }
  char digits[48];
  int at = sizeof(digits);
  digits[--at] = 0;
  do digits[--at] = (char)('0' + (int)(value % 10));
  while ((value /= 10) > 0);
  fputs(digits + at, stdout);
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 4;
  hits = argc > 2 ? atol(argv[2]) : 1000;
  pthread_t all[64];
  struct told told[64] = {0};
  for (int i = 0; i < threads; i++) {
    told[i].number = i;
    pthread_create(&all[i], NULL, argc > 3 ? work_with_reals : work, &told[i]);
  }
  for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
  for (int i = 0; i < threads; i++) {
    printf("%d %ld ", i, hits);
    print_wide(told[i].sum);
    printf(" %lld %lld\n", (long long)told[i].smallest, (long long)told[i].largest);
  }
  return 0;
}
