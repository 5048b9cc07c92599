/* SPDX-License-Identifier: BSD-2-Clause */
/* A library that is opened while its process is traced. */
#include <sys/sdt.h>

#ifndef TYPE
#define TYPE long
#endif

void late_fire(long n);
void late_fire(long n) { DTRACE_PROBE1(late, hit, (TYPE)n); }
