/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens libraries and starts programs as it is told, and counts what it does. Orders are lines of standard input, each
 * answered with one line of standard output:
 *     open PATH     dlopen(3); answers with 0, or 1 if it cannot
 *     fire N        N calls of the library, each a hit of late:hit(n), n counting up over the process's life
 *     close         dlclose(3)
 *     cycle N PATH  N times: opens it, 1 call, closes it
 *     run N PATH    N times: a child that becomes PATH and ends; answers with the number of those that ended well
 * With numbers as arguments instead (`later 3`): so many hits of late:own(n), and it ends. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void fire_function(long n);

static void* library;
static long fired;

static int open_library(const char* path) {
  library = dlopen(path, RTLD_NOW);
  return library ? 0 : 1;
}

static long fire(long count) {
  fire_function* function = library ? (fire_function*)dlsym(library, "late_fire") : NULL;
  for (long i = 0; function && i < count; i++) function(fired++);
  return fired;
}

static void close_library(void) {
  if (library) dlclose(library);
  library = NULL;
}

static long run(long count, const char* path) {
  long well = 0;
  for (long i = 0; i < count; i++) {
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
      execl(path, path, "3", (char*)NULL);
      _exit(127);
    }
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0) well++;
  }
  return well;
}

static long obey(const char* order, long count, const char* path) {
  if (strcmp(order, "open") == 0) return open_library(path);
  if (strcmp(order, "fire") == 0) return fire(count);
  if (strcmp(order, "run") == 0) return run(count, path);
  if (strcmp(order, "cycle") == 0) {
    for (long i = 0; i < count && open_library(path) == 0; i++) {
      fire(1);
      close_library();
    }
    return fired;
  }
  close_library();
  return 0;
}

int main(int argc, char** argv) {
  char line[4096], order[16], path[4096];
  if (argc > 1) {
    for (long i = 0; i < atol(argv[1]); i++) DTRACE_PROBE1(late, own, i);
    return 0;
  }
  while (fgets(line, sizeof(line), stdin)) {
    long count = 0;
    path[0] = '\0';
    if (sscanf(line, "%15s %ld %4095s", order, &count, path) < 2) sscanf(line, "%15s %4095s", order, path);
    printf("%ld\n", obey(order, count, path));
    fflush(stdout);
  }
  return 0;
}
