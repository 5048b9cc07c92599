/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RUNTIME_PROGRAM_H
#define RUNTIME_PROGRAM_H

#include <usdt/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the program if `status` is an error. */
void must(int status, const char* what);
usdtp_provider* provider_of(const char* name);
usdtp_probe* probe_of(usdtp_provider* provider, const char* name, const char* arguments);

/* Says the pid and waits for a line. */
void ready(void);

/* Fires probes with values of all types; what was passed is in the file `log`. In C and in C++. */
int run_values(int rounds, const char* log);

#ifdef __cplusplus
}
#endif
#endif
