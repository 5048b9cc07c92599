// SPDX-License-Identifier: BSD-2-Clause
// A program that looks like Ruby of the version VERSION, and has frames, pointers to nowhere and texts of any length
// where that has what it runs; another thread changes them all the time. argv: how often the place is passed.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROOM (1 << 16)

const char ruby_version[8] = VERSION;
__thread unsigned long* ruby_current_ec;
static unsigned long memory[ROOM];
static volatile int over;

static unsigned long next(void) {
  static __thread unsigned long state;

  if (!state) state = (unsigned long)&state;
  state = state * 6364136223846793005ul + 1442695040888963407ul;
  return state >> 16;
}

/* Anything that may stand in a structure: an address among them, most often. */
static unsigned long anything(void) {
  switch (next() % 8) {
    case 0:
      return next();
    case 1:
      return next() % 4096;
    default:
      return (unsigned long)&memory[next() % (ROOM - 64)];
  }
}

static void* change(void* unused) {
  while (!over) memory[next() % ROOM] = anything();
  return unused;
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  unsigned long *context = memory, *thread = memory + 100;
  pthread_t other;
  int i;

  for (i = 0; i < ROOM; i++) memory[i] = anything();
  puts("ready");
  fflush(stdout);
  if (getchar() < 0) return 1;
  ruby_current_ec = context;
  pthread_create(&other, NULL, change, NULL);
  for (i = 0; i < rounds; i++) {
    context[48 / 8] = (unsigned long)thread;
    thread[80 / 8] = pthread_self();
    thread[40 / 8] = (unsigned long)context;
    context[0] = (unsigned long)(memory + 1024);
    context[8 / 8] = 8192;
    context[16 / 8] = (unsigned long)(memory + 1024 + 8192 - 8 * (i % 200));
    if (i % 3 == 0) context[next() % 3] = anything();
    getppid();
  }
  over = 1;
  pthread_join(other, NULL);
  return 0;
}
