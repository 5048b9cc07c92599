// SPDX-License-Identifier: BSD-2-Clause
// A program that looks like CPython of the version VERSION, and has lists without an end, pointers to nowhere and texts
// of any length where that has what it runs; another thread changes them all the time. argv: how often the place is
// passed.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOM (1 << 16)

const unsigned long Py_Version = VERSION;
unsigned long PyCode_Type[64];
unsigned long _PyRuntime[8192];
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
    case 2:
      return (unsigned long)PyCode_Type;
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
  unsigned long *interpreter = memory, *state = memory + 100;
  pthread_t other;
  int i;

  for (i = 0; i < ROOM; i++) memory[i] = anything();
  _PyRuntime[40 / 8] = (unsigned long)interpreter;
  interpreter[16 / 8] = (unsigned long)state;
  state[16 / 8] = (unsigned long)interpreter;
  puts("ready");
  fflush(stdout);
  if (getchar() < 0) return 1;
  pthread_create(&other, NULL, change, NULL);
  for (i = 0; i < rounds; i++) {
    interpreter[16 / 8] = (unsigned long)state;
    state[152 / 8] = pthread_self();
    _PyRuntime[576 / 8] = i % 2 ? (unsigned long)state : anything();
    getppid();
  }
  over = 1;
  pthread_join(other, NULL);
  return 0;
}
