/* SPDX-License-Identifier: BSD-2-Clause */
/* `leaf stub|plain CALLS`: prints in how many calls the locals of a function changed under its probe. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <usdt/probe.h>

#include "said.h"

/* Locals are volatile, so that they are in memory; in a function without calls that is the red zone. */
#define LOCALS volatile long a = seed, b = seed + 1, c = seed + 2, d = seed + 3
#define INTACT (a == seed && b == seed + 1 && c == seed + 2 && d == seed + 3)

NOINLINE int stub(long seed) {
  LOCALS;
  USDT_PROBE_STUB(leaf, stub, seed, a);
  return !INTACT;
}

NOINLINE int plain(long seed) {
  LOCALS;
  USDT_PROBE(leaf, plain, seed, a);
  return !INTACT;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const long calls = atol(argv[2]);
  long corrupted = 0;
  for (long i = 0; i < calls; i++) corrupted += strcmp(argv[1], "stub") == 0 ? stub(i) : plain(i);
  printf("%ld corrupted\n", corrupted);
  return 0;
}
