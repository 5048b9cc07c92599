// SPDX-License-Identifier: BSD-2-Clause
// Functions that say what they were called with and what they return: "NAME ARGUMENTS -> RESULT", a line each when
// they return. Also compiled as C++.
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

enum color { RED = 1, GREEN = 5, BLUE = -3 };
struct request {
  int id;
  const char* path;
};

static jmp_buf out_of_here;

NOINLINE int64_t small_ones(bool flag, signed char c, unsigned char u, short s, unsigned short t) {
  const int64_t result = (flag ? 1000 : 1) + c + u + s - t;
  printf("small_ones %d %d %u %d %u -> %lld\n", flag, c, u, s, t, (long long)result);
  return result;
}

NOINLINE unsigned eight(int a, long long b, unsigned c, int64_t d, uint64_t e, int f, short g, uint32_t h) {
  const unsigned result = (unsigned)(a + b + c + (unsigned)d + (unsigned)e + (unsigned)f + (unsigned)g + h);
  printf("eight %d %lld %u %lld %llu %d %d %u -> %u\n", a, b, c, (long long)d, (unsigned long long)e, f, g, h, result);
  return result;
}

NOINLINE const char* texts(const char* who, enum color color) {
  const char* result = color == GREEN ? "it is green" : "it is not";
  printf("texts %s %d -> %s\n", who, color, result);
  return result;
}

NOINLINE void nothing(const struct request* request) { printf("nothing %lu -> void\n", (unsigned long)request); }

NOINLINE double with_float(int before, double number, int behind) {
  const double result = number * before + behind;
  printf("with_float %d %g %d -> %g\n", before, number, behind, result);
  return result;
}

NOINLINE int recursive(int depth) {
  const int result = depth == 0 ? 7 : recursive(depth - 1) + depth;
  printf("recursive %d -> %d\n", depth, result);
  return result;
}

NOINLINE int jumps(int value) {
  if (value > 2) longjmp(out_of_here, value);
  printf("jumps %d -> %d\n", value, value + 1);
  return value + 1;
}

static NOINLINE int local_one(struct request* request, int times) {
  const int result = request->id * times + request->path[0];
  printf("local_one %lu %d -> %d\n", (unsigned long)request, times, result);
  return result;
}

// Not a call where the compiler inlines it.
static inline __attribute__((always_inline)) int copied(int value) {
  printf("copied %d -> ?\n", value);
  return value * 3;
}

int main(int argc, char** argv) {
  struct request request = {41, "/index"};
  volatile int rounds = 6; /* or Clang 19 unrolls the loop, and tells one place of each copy */
  (void)argv;
  for (int i = 0; i < rounds; i++) {
    small_ones(i % 2, (signed char)(-i), (unsigned char)(250 + i), (short)(-300 * i), (unsigned short)(65530 + i));
    eight(-i, -5000000000LL * i, 4000000000U + (unsigned)i, INT64_MIN + i, UINT64_MAX - (unsigned)i, argc, -7, 9U);
    texts(i % 2 ? "one" : "the other", i % 3 ? GREEN : BLUE);
    nothing(&request);
    with_float(i, 2.5, -i);
    recursive(i);
    if (!setjmp(out_of_here)) jumps(i);
    local_one(&request, i + argc);
    copied(i * 11);
    copied(i * 13);
  }
  return 0;
}
