// SPDX-License-Identifier: BSD-2-Clause
// Passes larger values as time goes by, and says when.
#include <stdio.h>
#include <sys/sdt.h>
#include <time.h>
int main(void) {
  for (long i = 0; i < 24; i++) {
    struct timespec now, wait = {0, 50000000};
    for (long n = 0; n < 10; n++) DTRACE_PROBE1(heat, value, (1 << (i / 4)) + n % 2);
    clock_gettime(CLOCK_REALTIME, &now);
    printf("%ld.%09ld %ld\n", (long)now.tv_sec, now.tv_nsec, i);
    fflush(stdout);
    nanosleep(&wait, 0);
  }
  return 0;
}
