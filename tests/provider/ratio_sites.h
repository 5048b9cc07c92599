/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RATIO_SITES_H
#define RATIO_SITES_H

#include <usdt/provider.h>

#ifdef __cplusplus
extern "C" {
#endif
extern usdtp_probe* run_time_probe; /* made by the test */
void hit_sdt(long value);
void hit_stub(long value);
void hit_plain(long value);
void hit_none(long value);
void hit_run_time(long value);
#ifdef __cplusplus
}
#endif

#endif
