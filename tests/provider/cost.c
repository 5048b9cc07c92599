/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that differ by a probe only: what it costs while nobody traces is the difference of their ways. No value
 * lives across a probe, so that no register is kept for its sake. */
#include <usdt/probe.h>
#include <usdt/provider.h>

int work(void);

int number;
double* numbers;

int bare(void) {
  work();
  return work() + 1;
}

int plain(void) {
  work();
  USDT_PROBE(cost, plain, 5);
  return work() + 1;
}

int lazy(void) {
  work();
  USDT_PROBE_LAZY(cost, lazy, number, work());
  return work() + 1;
}

int stub(void) {
  work();
  USDT_PROBE_STUB(cost, stub, number, work());
  return work() + 1;
}

int expensive(void) {
  work();
  USDT_PROBE_STUB(cost, expensive, number, numbers[number], numbers[3], number / 7, "text", numbers);
  return work() + 1;
}

extern usdtp_probe fired_probe;

int fired(void) {
  work();
  USDT_PROBE_FIRE(&fired_probe, number, numbers[number], number / 7, "text");
  return work() + 1;
}
