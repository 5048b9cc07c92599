// SPDX-License-Identifier: BSD-2-Clause
// Threads that publish the trace and span they work for as OTEP 4947 says, and tell a probe which hit it is: for each
// line "COUNT" that is read every thread works COUNT times. Some of it is done for no trace, and some hits are while
// the record is being changed. What each thread had published at its hits is in the file LOG.THREAD.
//   context_writer THREADS LOG
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context_record.h"

#ifdef VARIABLE_IN_PROGRAM
__thread struct record* volatile otel_thread_ctx_v1;
struct record* volatile* place_of_context(void) {
  return &otel_thread_ctx_v1;
}
#elif !defined(LIBRARY)
struct record* volatile* place_of_context(void);
#endif

static struct record* volatile* (*place)(void);
static pthread_barrier_t begin, end;
static long count;
static const char* log_file;

static void* work(void* given) {
  const long thread = (long)given;
  static __thread struct record record;
  char name[256];
  snprintf(name, sizeof(name), "%s.%ld", log_file, thread);
  FILE* log = fopen(name, "w");
  if (!log) exit(1);
  for (long n = 0;;) {
    pthread_barrier_wait(&begin);
    struct record* volatile* context = place();
    for (long last = n + count; n < last; n++) {
      publish(context, &record, n, thread);
      log_hit(log, n, thread, *context, 0);
      DTRACE_PROBE2(writer, works, n, thread);
    }
    *context = NULL;
    fflush(log);
    pthread_barrier_wait(&end);
  }
  return NULL;
}

// A call, and a span of two probes, of one request.
__attribute__((noinline)) long serve(long n) {
  __asm__ volatile("" : "+r"(n));
  return n + 1;
}

static void serve_some(void) {
  static struct record record = {.valid = 1, .flags = 1};
  put(record.trace_id + 8, 1);
  for (long n = 1; n < 6; n++) {
    put(record.trace_id, (uint64_t)n);
    put(record.span_id, (uint64_t)n);
    *place() = &record;
    DTRACE_PROBE1(writer, begins, n);
    serve(n);
    *place() = NULL;
    DTRACE_PROBE1(writer, ends, n);
  }
}

static int gate[2];

#ifdef LIBRARY
// Its variable is called otherwise, and points to what looks like a record.
static void fork_with_another_library(void) {
  static struct record record = {.trace_id = {0xba, 0xd}, .span_id = {0xba, 0xd}, .valid = 1};
  char byte;
  if (pipe(gate) == 0 && fork() == 0) {
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 0) _exit(1);
    void* library = dlopen("./libother.so", RTLD_NOW);
    struct record* volatile* (*other)(void) = (struct record* volatile * (*)(void)) dlsym(library, "place_of_context");
    *other() = &record;
    for (long n = 0; n < 50; n++) {
      DTRACE_PROBE2(writer, forked, n, n);
      usleep(10000);
    }
    _exit(0);
  }
  puts("done");
  fflush(stdout);
}
#endif

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  const int threads = atoi(argv[1]);
  log_file = argv[2];
  char line[64];
  pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
  pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
  for (long i = 0; i < threads; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void*)i);
  }
#ifndef LIBRARY
  place = place_of_context;
#endif
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof(line), stdin)) {
#ifdef LIBRARY
    if (line[0] == 'o') {  // forks: the child waits, and opens another library, which has the place of the one here
      fork_with_another_library();
      continue;
    }
    static void* library;
    if (line[0] == 'c') {  // closes the library and opens it again
      dlclose(library);
      place = NULL;
    }
    if (!place) {
      library = dlopen(LIBRARY, RTLD_NOW);
      if (!library) return puts(dlerror()), 1;
      place = (struct record* volatile * (*)(void)) dlsym(library, "place_of_context");
    }
#endif
    if (line[0] == 'c') {
    } else if (line[0] == 'g') {  // the child that waits goes on
      close(gate[1]);
      wait(NULL);
    } else if (line[0] == 'f') {  // forks: the child works on
      if (fork() == 0) {
        const long own = 1;
        *place() = NULL;
        static struct record record = {.valid = 1};
        put(record.trace_id + 8, 77);
        *place() = &record;
        for (long n = 0; n < 50; n++) {
          put(record.trace_id, (uint64_t)n);
          put(record.span_id, 2 * (uint64_t)n + 1);
          DTRACE_PROBE2(writer, forked, n, own);
        }
        _exit(0);
      }
    } else if (line[0] == 's') {
      serve_some();
    } else {
      count = atol(line);
      pthread_barrier_wait(&begin);
      pthread_barrier_wait(&end);
    }
    puts("done");
    fflush(stdout);
  }
}
