/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIME_VIEWS_H
#define RUNTIME_VIEWS_H

#include <stdio.h>
#include <usdt/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What C++ adds to the types. */
void make_views(usdtp_provider* provider);
void fire_views(FILE* log, int round);

#ifdef __cplusplus
}
#endif
#endif
