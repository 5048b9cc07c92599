// SPDX-License-Identifier: BSD-2-Clause
// Threads that begin and end work at two probes, and say what they did.
// usage: spans pairs THREADS N | slow THREADS N | nested DEPTH N | unmatched N | across N | texts N
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <time.h>

static long number;

struct told {
  long thread, sum, largest;
};

/// Both ends know the work's number; the end has a result. The key of the pair is the thread.
static void* pairs(void* argument) {
  struct told* told = argument;
  for (long i = 0; i < number; i++) {
    const long work = told->thread * 10000000 + i;
    const int result = (int)(i % 1000) - 300;
    DTRACE_PROBE2(spans, begin, work, told->thread);
    DTRACE_PROBE2(spans, end, work, result);
    told->sum += result;
    if (work + result > told->largest) told->largest = work + result;
  }
  return NULL;
}

static void in_threads(int threads) {
  pthread_t all[64];
  struct told told[64] = {0};
  for (int i = 0; i < threads; i++) {
    told[i].thread = i;
    pthread_create(&all[i], NULL, pairs, &told[i]);
  }
  for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
  for (int i = 0; i < threads; i++) printf("%ld %ld %ld %ld\n", told[i].thread, number, told[i].sum, told[i].largest);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/// How long each took at least, from behind its beginning to before its end, and at most.
struct timed {
  int64_t least, most;
};

/// Every hundredth takes a while, each another one.
static void* slow(void* argument) {
  const long thread = ((struct told*)argument)->thread;
  struct timed* timed = calloc(number, sizeof(*timed));
  for (long i = 0; i < number; i++) {
    const int64_t before = now();
    DTRACE_PROBE2(spans, begin, thread * 10000000 + i, thread);
    const int64_t begun = now();
    const int64_t until = begun + (i % 100 == 99 ? (i / 100 * 37 + thread * 11) % 400 * 2000 : 0);
    while (now() < until) continue;
    const int64_t ends = now();
    DTRACE_PROBE2(spans, end, thread * 10000000 + i, (int)(i % 1000) - 300);
    timed[i] = (struct timed){ends - begun, now() - before};
  }
  return timed;
}

static void slow_in_threads(int threads) {
  pthread_t all[64];
  struct told told[64] = {0};
  for (int i = 0; i < threads; i++) {
    told[i].thread = i;
    pthread_create(&all[i], NULL, slow, &told[i]);
  }
  for (int thread = 0; thread < threads; thread++) {
    struct timed* timed = NULL;
    pthread_join(all[thread], (void**)&timed);
    for (long i = 0; i < number; i++)
      printf("%ld %lld %lld\n", thread * 10000000L + i, (long long)timed[i].least, (long long)timed[i].most);
    free(timed);
  }
}

__attribute__((noinline)) long nested(long depth, long work) {
  DTRACE_PROBE2(spans, begin, work, depth);
  const long below = depth > 1 ? nested(depth - 1, work + 1) : 0;
  DTRACE_PROBE2(spans, end, work, depth + below);
  return depth + below;
}

/// Every third beginning has no end of its own, and before each fifth there is an end of nothing.
static void unmatched(void) {
  long begins = 0, ends = 0, paired = 0;
  for (long i = 0; i < number; i++) {
    if (i % 5 == 0) {
      DTRACE_PROBE2(spans, end, 1000000 + i, 0);
      ends++;
    }
    DTRACE_PROBE2(spans, begin, i, 0);
    begins++;
    if (i % 3 == 0) continue;
    DTRACE_PROBE2(spans, end, i, 1);
    ends++;
    paired++;
  }
  printf("%ld %ld %ld\n", begins, ends, paired);
}

static pthread_barrier_t handed_over;

static void* others_end(void* unused) {
  (void)unused;
  for (long first = 0; first < number; first += 100) {
    pthread_barrier_wait(&handed_over);
    // In another order than they began.
    for (long i = first + 99; i >= first; i--) DTRACE_PROBE2(spans, end, i, 3 * i);
    pthread_barrier_wait(&handed_over);
  }
  return NULL;
}

/// What one thread begins another one ends.
static void across(void) {
  pthread_t other;
  pthread_barrier_init(&handed_over, NULL, 2);
  pthread_create(&other, NULL, others_end, NULL);
  for (long first = 0; first < number; first += 100) {
    for (long i = first; i < first + 100; i++) DTRACE_PROBE2(spans, begin, i, 2 * i);
    pthread_barrier_wait(&handed_over);
    pthread_barrier_wait(&handed_over);
  }
  pthread_join(other, NULL);
  printf("%ld\n", number);
}

/// The text of the beginning has another content by the end.
static void texts(void) {
  char question[64], answer[64];
  for (long i = 0; i < number; i++) {
    snprintf(question, sizeof(question), "question %ld of the beginning", i);
    DTRACE_PROBE2(spans, ask, question, i);
    memset(question, '-', sizeof(question) - 1);
    snprintf(answer, sizeof(answer), "answer %ld of the end", i);
    DTRACE_PROBE2(spans, answer, i, answer);
  }
  printf("%ld\n", number);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "pairs";
  number = argc > 2 ? atol(argv[argc - 1]) : 1000;
  if (strcmp(mode, "pairs") == 0) {
    in_threads(argc > 3 ? atoi(argv[2]) : 4);
  } else if (strcmp(mode, "slow") == 0) {
    slow_in_threads(argc > 3 ? atoi(argv[2]) : 4);
  } else if (strcmp(mode, "nested") == 0) {
    for (long i = 0; i < number; i++) nested(atol(argv[2]), i * 1000);
    printf("%ld\n", number);
  } else if (strcmp(mode, "unmatched") == 0) {
    unmatched();
  } else if (strcmp(mode, "across") == 0) {
    across();
  } else {
    texts();
  }
  return 0;
}
