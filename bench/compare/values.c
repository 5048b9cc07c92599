// SPDX-License-Identifier: BSD-2-Clause
// Passes probes with one argument each, of different types and in different places, and prints what each of them is:
// "NAME VALUE".
#include <stdio.h>
#include <sys/sdt.h>

volatile int in_a_global = -70000;
volatile short in_a_table[4] = {-1, -2, -3, -4};
static __thread volatile int in_a_thread = -77;

#define PASS(name, format, value)         \
  do {                                    \
    printf(#name " " format "\n", value); \
    DTRACE_PROBE1(values, name, value);   \
  } while (0)

int main(int argc, char** argv) {
  (void)argv;
  // On the stack, and what was calculated in registers.
  volatile signed char small = -5;
  volatile unsigned char small_unsigned = 250;
  volatile short medium = -300;
  volatile double real = 1.5 * argc;
  volatile float short_real = -0.25f * argc;
  const long large = -9000000000L * argc;
  const unsigned long largest = 0UL - argc;
  PASS(int8, "%d", small);
  PASS(uint8, "%u", small_unsigned);
  PASS(int16, "%d", medium);
  PASS(int64, "%ld", large);
  PASS(uint64, "%lu", largest);
  PASS(constant, "%d", -42);
  PASS(global, "%d", in_a_global);
  PASS(table, "%d", in_a_table[argc + 1]);
  PASS(thread, "%d", in_a_thread);
  PASS(double, "%g", real);
  PASS(float, "%g", short_real);
  return 0;
}
