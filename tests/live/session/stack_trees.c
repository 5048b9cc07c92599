// SPDX-License-Identifier: BSD-2-Clause
// As many different stacks as there are ways to the leaves of a tree, each twice. usage: stack_trees WAYS
#include <stdlib.h>
#include <sys/sdt.h>

static volatile unsigned long sink;
void left(unsigned way, int depth);
void right(unsigned way, int depth);

__attribute__((noinline)) static void leaf(unsigned way) {
  DTRACE_PROBE1(trees, leaf, way);
  sink++;
}

static inline __attribute__((always_inline)) void go_on(unsigned way, int depth, unsigned done) {
  if (depth == 0)
    leaf(done);
  else if (way >> (depth - 1) & 1)
    right(way, depth - 1);
  else
    left(way, depth - 1);
  sink++; /* no tail call */
}

__attribute__((noinline)) void left(unsigned way, int depth) { go_on(way, depth, way); }
__attribute__((noinline)) void right(unsigned way, int depth) { go_on(way, depth, way); }

int main(int argc, char** argv) {
  const unsigned ways = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
  for (unsigned way = 0; way < 2 * ways; way++) go_on(way % ways, 12, way % ways);
  return 0;
}
