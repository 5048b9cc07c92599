// SPDX-License-Identifier: BSD-2-Clause
// "compare HITS TEXT" passes a probe so many times, and prints how many nanoseconds that took.
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <time.h>

int main(int argc, char** argv) {
  struct timespec began, ended;
  const long hits = argc > 2 ? atol(argv[1]) : 1;
  const char* text = argc > 2 ? argv[2] : "";
  clock_gettime(CLOCK_MONOTONIC, &began);
  for (long i = 0; i < hits; ++i) DTRACE_PROBE2(compare, hit, i, text);
  clock_gettime(CLOCK_MONOTONIC, &ended);
  printf("took %lld\n", (long long)(ended.tv_sec - began.tv_sec) * 1000000000 + ended.tv_nsec - began.tv_nsec);
  return 0;
}
