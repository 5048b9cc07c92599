// SPDX-License-Identifier: BSD-2-Clause
// A process that allocates, and says how long that took: "bystander COUNT" prints nanoseconds.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char** argv) {
  struct timespec began, ended;
  const int count = argc > 1 ? atoi(argv[1]) : 20000;
  clock_gettime(CLOCK_MONOTONIC, &began);
  for (int i = 0; i < count; ++i) {
    void* volatile memory = malloc(100);
    free(memory);
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  printf("%lld\n", (long long)(ended.tv_sec - began.tv_sec) * 1000000000 + ended.tv_nsec - began.tv_nsec);
  return 0;
}
