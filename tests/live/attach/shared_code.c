/* SPDX-License-Identifier: BSD-2-Clause */
/* A shared library with one probe, in two builds: with NEWER its probe is further down, and where the older build has
 * its nop this one is in the middle of a computation. A breakpoint there is deadly, or makes the result wrong. */
#include <sys/sdt.h>

#ifdef __aarch64__
#define ADD_ONE "add %0, %0, #1\n"
#else
#define ADD_ONE "add $1, %0\n"
#endif

long shared_code(long n);
long shared_code(long n) {
#ifdef NEWER
  /* Beyond 32 bits: x86 without the first byte of an addition is another one, of 32 bits. */
  n += 1L << 40;
  __asm__ volatile(".rept 4000\n" ADD_ONE ".endr" : "+r"(n));
  n -= 1L << 40;
#else
  __asm__ volatile(".rept 100\n nop\n .endr");
  n += 4000;
#endif
  DTRACE_PROBE1(shared, code, n);
  return n;
}
