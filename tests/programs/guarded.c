/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes behind their semaphores. `guarded ROUNDS` fires and logs only while a tracer holds the semaphore up, and
 * prints on standard output how often it found it down. */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#include "truth_log.h"

#define SEMAPHORE(name) __attribute__((section(".probes"), used)) volatile unsigned short name
SEMAPHORE(guarded_step_semaphore);
SEMAPHORE(guarded_done_semaphore);

TRUTH_NOINLINE static int step(int64_t value, const char* label) {
  if (!guarded_step_semaphore) return 0;
  DTRACE_PROBE2(guarded, step, value, label);
  truth_open("step");
  truth_i(value);
  truth_u((uintptr_t)label);
  truth_close();
  return 1;
}

TRUTH_NOINLINE static int done(uint8_t code) {
  if (!guarded_done_semaphore) return 0;
  DTRACE_PROBE1(guarded, done, code);
  truth_open("done");
  truth_u(code);
  truth_close();
  return 1;
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  int missed = 0;

  truth_start();
  for (int i = 0; i < rounds; i++) missed += !step((int64_t)i * -4503599627370497, "label");
  missed += !done(255);
  printf("%d\n", missed);
  return 0;
}
