// SPDX-License-Identifier: BSD-2-Clause
#include <usdt/usdtc.h>

void fail(const char* message);
void on_event(const usdtc_event* event, void* user);
void trace(const char* pattern, void* user) {
  usdtc_selection* selection;
  usdtc_plan* plan;
  usdtc_tracer* tracer;
  /* BLOCK */
}
