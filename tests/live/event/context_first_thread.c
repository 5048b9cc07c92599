// SPDX-License-Identifier: BSD-2-Clause
// The first thread of a program publishes what it works for (OTEP 4947) before it has ever waited, then after it has;
// then it executes its program again, ROUNDS times in all. Where the program before had the thread's variable this one
// has, unless something else is there, a pointer to a record that no thread has published. Each hit is in the file LOG.
//   context_first_thread LOG ROUNDS MILLISECONDS [N PLACE]
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <time.h>
#include <unistd.h>

#include "context_record.h"

__thread struct record* volatile otel_thread_ctx_v1;
static struct record record, not_published = {.trace_id = {0xba, 0xd}, .span_id = {0xba, 0xd}, .valid = 1, .flags = 1};

static uint64_t microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

// Has hits for so long, and at least so many, since an emulated machine may be slow.
static long work(FILE* log, long n, long milliseconds, long hits, int waits) {
  const uint64_t end = microseconds() + 1000 * (uint64_t)milliseconds;
  const long last = n + hits;
  for (uint64_t now = 0; now < end || n < last; n++) {
    publish(&otel_thread_ctx_v1, &record, n, 0);
    log_hit(log, n, 0, otel_thread_ctx_v1, waits);
    DTRACE_PROBE2(writer, works, n, 0L);
    for (const uint64_t begin = now = microseconds(); now < begin + 1000;) now = microseconds();
  }
  return n;
}

static void mislead(FILE* log, uint64_t place) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  void* at = (void*)(uintptr_t)(place & ~(page - 1));
  if (mmap(at, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at) return;
  *(struct record**)(uintptr_t)place = &not_published;
  fputs("misleads\n", log);
}

int main(int argc, char** argv) {
  static char buffer[1 << 20];  // so that nothing is written before the end
  const long milliseconds = atol(argv[3]), rounds = atol(argv[2]) - 1;
  char left[24], next[24], place[24];
  FILE* log = fopen(argv[1], "a");
  if (!log) return 1;
  setvbuf(log, buffer, _IOFBF, sizeof(buffer));
  if (argc > 5) mislead(log, strtoull(argv[5], NULL, 0));
  long n = work(log, argc > 4 ? atol(argv[4]) : 0, milliseconds, 60, 0);
  for (int waits = 1; waits < 4; waits++) {
    usleep(20000);
    n = work(log, n, milliseconds / 8, 8, waits);
  }
  usleep(20000);  // the kernel has the thread's pointer now
  fclose(log);
  if (rounds == 0) return 0;
  snprintf(left, sizeof(left), "%ld", rounds);
  snprintf(next, sizeof(next), "%ld", n);
  snprintf(place, sizeof(place), "%p", (void*)&otel_thread_ctx_v1);
  execl("/proc/self/exe", argv[0], argv[1], left, argv[3], next, place, NULL);
  return 1;
}
