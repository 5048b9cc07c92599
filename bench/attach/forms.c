// SPDX-License-Identifier: BSD-2-Clause
// "forms COUNT" calls a function so many times, and prints how many nanoseconds that took. With a second argument it
// waits for a line of standard input before.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) long tick(long n, const char* text) {
  __asm__ volatile("" : "+r"(n) : "r"(text) : "memory");
  return n;
}

int main(int argc, char** argv) {
  struct timespec began, ended;
  const long count = argc > 1 ? atol(argv[1]) : 1000000;
  char line[16];
  if (argc > 2 && !fgets(line, sizeof(line), stdin)) return 1;
  for (long i = 0; i < count / 20; ++i) tick(i, "a text of some length");
  clock_gettime(CLOCK_MONOTONIC, &began);
  for (long i = 0; i < count; ++i) tick(i, "a text of some length");
  clock_gettime(CLOCK_MONOTONIC, &ended);
  printf("took %lld\n", (long long)(ended.tv_sec - began.tv_sec) * 1000000000 + ended.tv_nsec - began.tv_nsec);
  return 0;
}
