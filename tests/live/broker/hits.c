/* SPDX-License-Identifier: BSD-2-Clause */
/* A shared library with a probe, and a function to trace. */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

__attribute__((section(".probes"), used)) volatile unsigned short shared_hit_semaphore;

__attribute__((noinline)) long pass(long n);
__attribute__((noinline, visibility("hidden"))) long ends(long n);
__attribute__((noinline)) long jumps(long n);
void fire_hits(long count, long first);

__attribute__((noinline)) long pass(long n) {
  const char* text = "text of a hit";
  __asm__ volatile("" ::"r"(*(const volatile char*)text)); /* its page is in memory: nobody waits for others */
  DTRACE_PROBE2(shared, hit, n, text);
  return 2 * n;
}

/* It returns where another function does, which others call, too. */
__attribute__((noinline, visibility("hidden"))) long ends(long n) {
  __asm__ volatile("" : "+r"(n));
  return n + 1;
}

__attribute__((noinline)) long jumps(long n) { return ends(2 * n); }

void fire_hits(long count, long first) {
  for (long n = 0; n < count; n++) {
    pass(first + n);
    ends(jumps(first + n));
  }
}
