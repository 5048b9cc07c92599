// SPDX-License-Identifier: BSD-2-Clause
// Lines to stop at: LINE comments are read by lines_test.py.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct item {
  int weight;
  const char* name;
};

static long total;

static inline __attribute__((always_inline)) int scaled(int value, int factor) {
  int product = value * factor;
  total += product;  // LINE
  return product + 1;
}

__attribute__((noinline)) int weigh(const struct item* items, unsigned count, bool twice) {
  int sum = 0;
  for (unsigned i = 0; i < count; ++i) {
    const struct item* each = &items[i];
    int weight = each->weight;
    if (twice) {
      short sum = (short)(weight * 2);
      total += sum;  // LINE
      weight = sum;
    }
    sum += scaled(weight, 3);  // LINE
    total -= i;                // LINE
  }
  static unsigned calls = 4;
  calls += 1;
  printf("%d %u\n", sum, calls);  // LINE
  return sum;
}

__attribute__((noinline)) long loop(long from, unsigned char step) {
  long last = -1;
  while (from > 0) {
    last = from * 3;
    from -= step;
    total ^= last;  // LINE
  }
  return last;  // LINE
}

int main(int argc, char** argv) {
  struct item items[] = {{3, "first"}, {-70000, "second"}, {12, argv[0]}};
  int both = weigh(items, 3, false) + weigh(items, 2, true);
  long rest = loop(20 + argc, 7);
  printf("%d %ld %ld\n", both, rest, total);  // LINE
  return 0;
}
