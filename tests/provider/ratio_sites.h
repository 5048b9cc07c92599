/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RATIO_SITES_H
#define RATIO_SITES_H

#ifdef __cplusplus
extern "C" {
#endif
void hit_sdt(long value);
void hit_stub(long value);
void hit_plain(long value);
void hit_none(long value);
#ifdef __cplusplus
}
#endif

#endif
