/* SPDX-License-Identifier: BSD-2-Clause */
/* A user's own probe: <usdt/probe.h> as it is installed. */
#include <usdt/probe.h>

void consume(int number);
void consume(int number) { USDT_PROBE(consumer, number, number); }
