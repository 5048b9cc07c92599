// SPDX-License-Identifier: BSD-2-Clause
#include <usdt/usdtc.h>

void read_rows(usdtc_tracer* tracer) {
  usdtc_error* error;
  /* BLOCK */
}
