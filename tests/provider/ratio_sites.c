/* SPDX-License-Identifier: BSD-2-Clause */
/* The same probe by SystemTap's header and by ours, alone in a function each. */
#include "ratio_sites.h"

#include <sys/sdt.h>
#include <usdt/probe.h>

void hit_sdt(long value) {
  DTRACE_PROBE1(ratio, sdt, value);
  __asm__ volatile("");
}
void hit_stub(long value) { USDT_PROBE_STUB(ratio, stub, value); }
void hit_plain(long value) { USDT_PROBE(ratio, plain, value); }
usdtp_probe* run_time_probe;
void hit_run_time(long value) { USDT_PROBE_FIRE(run_time_probe, value); }
void hit_none(long value) { __asm__ volatile("" : : "r"(value)); }
