// SPDX-License-Identifier: BSD-2-Clause
// What the recipes about C's library trace: it allocates blocks of known sizes, and its threads wait for mutexes. It
// says by its own counters and clock what it did: a line of how many blocks it asked for in each range from one power
// of 2 to the next and how many bytes they are, by the function that did; a line of how often and how long it waited.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long blocks[64], bytes_for_rows, bytes_for_index;
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER, quiet = PTHREAD_MUTEX_INITIALIZER;
static long long waits, longest, waited;

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int range(size_t size) { return 64 - __builtin_clzl(size); }

__attribute__((noinline)) void* load_rows(size_t size) {
  ++blocks[range(size)];
  bytes_for_rows += (long)size;
  void* block = malloc(size);
  __asm__ volatile("" ::: "memory");  // no tail call: the caller stays on the stack
  return block;
}

__attribute__((noinline)) void* build_index(size_t size) {
  ++blocks[range(size)];
  bytes_for_index += (long)size;
  void* block = malloc(size);
  __asm__ volatile("" ::: "memory");
  return block;
}

static void allocate(void) {
  void* block[300];
  for (int i = 0; i < 300; ++i)
    block[i] = i % 3 == 0 ? build_index(4096 + (size_t)i * 32) : load_rows(1 + (size_t)i * 7);
  for (int i = 0; i < 300; ++i) free(block[i]);
}

static void* hold(void* barrier) {
  for (int i = 0; i < 5; ++i) {
    pthread_mutex_lock(&contended);
    pthread_barrier_wait(barrier);
    usleep(20000);
    pthread_mutex_unlock(&contended);
    pthread_barrier_wait(barrier);
  }
  return NULL;
}

static void wait_for(pthread_barrier_t* barrier) {
  for (int i = 0; i < 5; ++i) {
    pthread_barrier_wait(barrier);
    const long long begin = now();
    pthread_mutex_lock(&contended);
    const long long took = now() - begin;
    pthread_mutex_unlock(&contended);
    ++waits;
    waited += took;
    if (took > longest) longest = took;
    pthread_mutex_lock(&quiet);
    pthread_mutex_unlock(&quiet);
    pthread_barrier_wait(barrier);
  }
}

int main(void) {
  allocate();
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_t holder;
  pthread_create(&holder, NULL, hold, &barrier);
  wait_for(&barrier);
  pthread_join(holder, NULL);
  static char out[4096];
  setvbuf(stdout, out, _IOFBF, sizeof out);  // else it asks for a block, too
  for (int i = 0; i < 64; ++i) printf("%s%ld", i == 0 ? "[[" : ", ", blocks[i]);
  printf("], %ld, %ld, %llu, %lld, %lld, %lld]\n", bytes_for_rows, bytes_for_index, (unsigned long long)&contended,
         waits, waited, longest);
  return 0;
}
