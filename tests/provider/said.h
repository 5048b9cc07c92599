/* SPDX-License-Identifier: BSD-2-Clause */
/* The program's own record of what it passes at its probes: one line for each hit, its values as numbers. */
#ifndef SAID_H
#define SAID_H

#ifdef __cplusplus
extern "C" {
#endif

void said(const char* probe, int count, const long long* values);
void failed(const char* why);
void run_c(int round);
void run_cpp(int round);
void run_more(int round);

#ifdef __cplusplus
}
#endif

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone, noipa))
#endif

/* The values are compared with what a tracer read in place of them. */
#define SAID(probe, ...)                                                         \
  do {                                                                           \
    const long long said_values[] = {__VA_ARGS__};                               \
    said(probe, (int)(sizeof said_values / sizeof said_values[0]), said_values); \
  } while (0)

#endif
