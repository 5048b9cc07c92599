// SPDX-License-Identifier: BSD-2-Clause
// A program whose allocations are known: it waits for an order, does what its first argument says, prints what it did,
// and waits for another order before it ends. Sizes from 70,000 on are those that it logs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t state;
static uint64_t next_random(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

static int is_alone; /* nobody gives orders */
static void wait_for_order(void) {
  char order[16];
  fflush(stdout);
  if (is_alone) return;
  if (read(STDIN_FILENO, order, sizeof(order)) <= 0) _exit(0);
}

static void* made(void* pointer, size_t size) {
  printf("alloc %llu %zu\n", (unsigned long long)(uintptr_t)pointer, size);
  return pointer;
}
static void freed(void* pointer) { printf("free %llu\n", (unsigned long long)(uintptr_t)pointer); }
static void release(void* pointer) {
  freed(pointer);
  free(pointer);
}
/* The old place as a number: the pointer is not to be looked at after this. */
static void* moved(uintptr_t from, void* to, size_t size) {
  printf("free %llu\n", (unsigned long long)from);
  return made(to, size);
}

/* Each function, and what of them fails or is of nothing. */
static int each_way(void) {
  release(made(malloc(70001), 70001));
  release(made(calloc(7, 10001), 70007));
  void* grown = made(realloc(NULL, 70010), 70010);
  grown = moved((uintptr_t)grown, realloc(grown, 700010), 700010);
  grown = moved((uintptr_t)grown, realloc(grown, 70011), 70011);
  uintptr_t kept = (uintptr_t)grown;
  volatile size_t huge = SIZE_MAX / 4;
  errno = 0;
  if (realloc(grown, huge) != NULL || errno != ENOMEM) return 2;
  moved(kept, grown, 70011); /* it is still there, and was reported as freed meanwhile */
  if (reallocarray(grown, huge, 8) != NULL || errno != ENOMEM) return 3;
  grown = moved((uintptr_t)grown, reallocarray(grown, 7, 10002), 70014);
  freed(grown);
  if (realloc(grown, 0) != NULL) return 4; /* glibc frees it */
  release(made(aligned_alloc(64, 70016), 70016));
  void* aligned = NULL;
  if (posix_memalign(&aligned, 4096, 70017) != 0 || (uintptr_t)aligned % 4096 != 0) return 5;
  release(made(aligned, 70017));
  release(made(memalign(256, 70018), 70018));
  release(made(valloc(70019), 70019));
  release(made(pvalloc(70020), 73728));
  if (malloc(huge) != NULL || calloc(huge, 8) != NULL || posix_memalign(&aligned, 3, 70000) != EINVAL) return 6;
  char* text = malloc(70022);
  made(text, 70022);
  memset(text, 'x', 70021);
  text[70021] = '\0';
  char* copy = strdup(text); /* of the C library, which allocates for itself */
  made(copy, 70022);
  release(text);
  if (malloc_usable_size(copy) < 70022) return 7;
  release(copy);
  errno = 77;
  free(malloc(70023));
  return errno == 77 ? 0 : 8;
}

/* What a child frees of its parent's was never the child's. */
static int forks(void) {
  void* inherited[100];
  for (int n = 0; n < 100; ++n) inherited[n] = malloc(71000 + n);
  for (int way = 0; way < 2; ++way) {
    fflush(stdout);
    const pid_t child = way == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
      for (int n = 0; n < 100; ++n) free(inherited[n]);
      void* own = malloc(72000 + way);
      free(own);
      _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) return 2;
  }
  for (int n = 0; n < 100; ++n) free(inherited[n]);
  return 0;
}

/* Bytes that are allocated at random, of which one in `keep` stays: how many of all, and of those. */
struct totals {
  uint64_t all, live;
};
static struct totals allocate_at_random(size_t count, unsigned keep) {
  struct totals totals = {0};
  for (size_t n = 0; n < count; ++n) {
    const uint64_t draw = next_random();
    const size_t size = 16 + (draw >> 8) % (draw % 10 == 0 ? 60000 : 600);
    void* pointer = malloc(size);
    totals.all += size;
    if ((draw >> 40) % keep == 0)
      totals.live += size;
    else
      free(pointer);
  }
  return totals;
}

static int estimates(void) {
  const struct totals totals = allocate_at_random(30000, 4);
  printf("all %llu live %llu\n", (unsigned long long)totals.all, (unsigned long long)totals.live);
  return 0;
}

/* A ring through which threads hand allocations to each other: who frees is not who allocated. */
enum { RING = 4096 };
static void* ring[RING];
static uint64_t sum_of_threads;
static void* work(void* argument) {
  uint64_t mine = (uintptr_t)argument * 0x9e3779b97f4a7c15u, sum = 0;
  for (int n = 0; n < 60000; ++n) {
    mine ^= mine << 13, mine ^= mine >> 7, mine ^= mine << 17;
    const size_t size = 16 + mine % 4000;
    sum += size;
    free(__atomic_exchange_n(&ring[(mine >> 20) % RING], malloc(size), __ATOMIC_ACQ_REL));
  }
  __atomic_fetch_add(&sum_of_threads, sum, __ATOMIC_RELAXED);
  return NULL;
}
static int threads(void) {
  for (int round = 0; round < 4; ++round) {
    pthread_t all[8];
    for (uintptr_t n = 0; n < 8; ++n)
      if (pthread_create(&all[n], NULL, work, (void*)(n + 1 + (uintptr_t)round * 8)) != 0) return 2;
    for (int n = 0; n < 8; ++n) pthread_join(all[n], NULL);
  }
  for (int n = 0; n < RING; ++n) free(ring[n]);
  printf("all %llu\n", (unsigned long long)sum_of_threads);
  return 0;
}

/* A handler that allocates, at any place of the allocator's functions. The one below has no locks (heap_next.c). */
static volatile uint64_t of_handlers;
static volatile unsigned handled;
static void handle(int number) {
  (void)number;
  for (int n = 0; n < 20; ++n) {
    void* pointer = malloc(1000);
    of_handlers += 1000;
    free(realloc(pointer, 2000));
    of_handlers += 2000;
  }
  handled++;
}
static int signals(void) {
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
  struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &often, NULL);
  uint64_t sum = 0;
  while (handled < 3000) {
    const size_t size = 16 + next_random() % 3000;
    sum += size;
    free(malloc(size));
  }
  setitimer(ITIMER_REAL, &never, NULL);
  printf("all %llu\n", (unsigned long long)(sum + of_handlers));
  return 0;
}

/* One allocation at a time, until the test ends. */
static int churn(void) {
  const pid_t test = getppid();
  while (getppid() == test) {
    for (int n = 0; n < 100; ++n) free(malloc(5000));
    usleep(200);
  }
  return 0;
}

/* Opens and closes the library itself, which has no function in use then. */
static int opens(const char* library) {
  for (int n = 0; n < 3; ++n) {
    void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (opened == NULL) return 2;
    free(malloc(70001));
    if (dlclose(opened) != 0) return 3;
    free(malloc(70002));
  }
  return 0;
}

/* One function that forgets what it allocates, among others that allocate more and free it after a while. */
#define APART __attribute__((noinline, noclone, noipa))
APART void* leaks_it(size_t size) { return memset(malloc(size), 1, size); }
APART void* caches_it(size_t size) { return memset(malloc(size), 2, size); }
APART void* passes_it(size_t size) { return memset(malloc(size), 3, size); }
static int leaks(void) {
  enum { CACHE = 2000 };
  void* cache[CACHE] = {0};
  for (int n = 0; n < 40000; ++n) {
    if (n % 8 == 0) ((char*)leaks_it(300 + next_random() % 400))[0] = 1;
    void** place = &cache[next_random() % CACHE];
    free(*place);
    *place = caches_it(500 + next_random() % 3000);
    free(passes_it(20000));
    if (n % 200 == 0) usleep(2000);
    if (n == 20000) {
      printf("warm\n"); /* the cache is full */
      wait_for_order();
    }
  }
  return 0;
}

/* A known number of blocks of a known size are kept. */
static int keeps(void) {
  enum { KEPT = 300 };
  for (int n = 0; n < KEPT; ++n) {
    ((char*)leaks_it(10000))[0] = 1;
    free(passes_it(20000));
  }
  printf("kept %d\n", KEPT * 10000);
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  state = argc > 2 ? strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u | 1 : 1;
  is_alone = argc > 2 && strcmp(argv[2], "alone") == 0;
  static char buffer[1 << 16];
  setvbuf(stdout, buffer, _IOFBF, sizeof(buffer)); /* so that printing allocates nothing */
  printf("ready\n");
  wait_for_order();
  int failed = 1;
  if (strcmp(argv[1], "each_way") == 0) failed = each_way();
  if (strcmp(argv[1], "forks") == 0) failed = forks();
  if (strcmp(argv[1], "estimates") == 0) failed = estimates();
  if (strcmp(argv[1], "threads") == 0) failed = threads();
  if (strcmp(argv[1], "signals") == 0) failed = signals();
  if (strcmp(argv[1], "churn") == 0) failed = churn();
  if (strcmp(argv[1], "opens") == 0) failed = opens(argv[3]);
  if (strcmp(argv[1], "leaks") == 0) failed = leaks();
  if (strcmp(argv[1], "keeps") == 0) failed = keeps();
  printf("done %d\n", failed);
  wait_for_order();
  return failed;
}
