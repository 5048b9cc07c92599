// SPDX-License-Identifier: BSD-2-Clause
// Processes that come in every way there is, each of which calls serve() and tells how often: "family ROUNDS" prints
// all calls, its own and theirs. They count in shared memory, so that what is told is what was called.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static long* calls;

__attribute__((noinline)) void serve(int round) {
  __asm__ volatile("" ::"r"(round) : "memory");
  __atomic_fetch_add(calls, 1, __ATOMIC_RELAXED);
}

static void* in_thread(void* round) {
  serve((int)(long)round);
  return NULL;
}

static int in_clone(void* round) {
  serve((int)(long)round);
  return 0;
}

/// One process after the other of the same memory, and another program image.
static void run_again(const char* shared) {
  char* const argv[] = {"family", "again", (char*)shared, NULL};
  pid_t pid;
  if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ) != 0) abort();
  waitpid(pid, NULL, 0);
}

/// A daemon: its parent has ended when it calls.
static void leave_orphan(int round) {
  if (fork() == 0) {
    if (fork() == 0) {
      usleep(500);
      serve(round);
      if (fork() == 0) serve(round);
    }
    _exit(0);
  }
}

static void one_round(int round, const char* shared) {
  static char stack[65536];
  pthread_t thread;
  serve(round);
  switch (round % 5) {
    case 0:
      if (fork() == 0) {
        serve(round);
        if (pthread_create(&thread, NULL, in_thread, (void*)(long)round) != 0) abort();
        pthread_join(thread, NULL);
        serve(round);
        _exit(0);
      }
      break;
    case 1:
      leave_orphan(round);
      break;
    case 2:
      if (vfork() == 0) {
        serve(round);
        execl("/proc/self/exe", "family", "again", shared, (char*)NULL);
        _exit(1);
      }
      break;
    case 3:
      waitpid(clone(in_clone, stack + sizeof stack, CLONE_VM | SIGCHLD, (void*)(long)round), NULL, 0);
      break;
    default:
      run_again(shared);
  }
}

int main(int argc, char** argv) {
  const int again = argc > 2 && strcmp(argv[1], "again") == 0;
  const char* name = again ? argv[2] : argc > 2 ? argv[2] : "/dev/shm/usdt-family";
  FILE* file = fopen(name, again ? "r+" : "w+");
  if (file == NULL || (!again && ftruncate(fileno(file), 4096) != 0)) return 2;
  calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  if (calls == MAP_FAILED) return 2;
  if (again) {
    serve(0);
    return 0;
  }
  if (argc > 3) getchar();  // until it is traced
  const int rounds = atoi(argv[1]);
  for (int i = 0; i < rounds; ++i) {
    one_round(i, name);
    while (i % 16 == 15 && waitpid(-1, NULL, 0) > 0) continue;
  }
  while (waitpid(-1, NULL, 0) > 0) continue;
  usleep(200000);  // orphans
  printf("%ld\n", __atomic_load_n(calls, __ATOMIC_RELAXED));
  return 0;
}
