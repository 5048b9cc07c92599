/* SPDX-License-Identifier: BSD-2-Clause */
/* A program's own record of what it passes at its probes: one JSON line per hit, in order per thread, appended to
 * the file named by TRUTH_LOG. Floats are written as C hexadecimal floats and text as hexadecimal bytes, so that
 * nothing is lost on the way. */
#ifndef TRUTH_LOG_H
#define TRUTH_LOG_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __clang__
#define TRUTH_NOINLINE __attribute__((noinline, unused))
#else
#define TRUTH_NOINLINE __attribute__((noinline, noclone, unused))
#endif

struct truth_line {
  char text[4096];
  int used;
  int values;
};

static __thread struct truth_line truth_now;
static int truth_fd = -1;

static inline void truth_start(void) {
  const char* path = getenv("TRUTH_LOG");
  if (path) truth_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

/* Keeps the compiler from carrying a value from the probe to the log (or back) in a register. */
static inline void truth_barrier(void) { __asm__ volatile("" ::: "memory"); }

TRUTH_NOINLINE static void truth_open(const char* probe) {
  struct truth_line* line = &truth_now;
  line->values = 0;
  line->used = snprintf(line->text, sizeof(line->text), "{\"tid\":%ld,\"probe\":\"%s\",\"args\":[",
                        (long)syscall(SYS_gettid), probe);
}

static inline const char* truth_comma(void) { return truth_now.values++ ? "," : ""; }

#define TRUTH_ADD(...) \
  (truth_now.used +=   \
   snprintf(truth_now.text + truth_now.used, sizeof(truth_now.text) - (size_t)truth_now.used, __VA_ARGS__))

TRUTH_NOINLINE static void truth_i(long long value) { TRUTH_ADD("%s%lld", truth_comma(), value); }

TRUTH_NOINLINE static void truth_u(unsigned long long value) { TRUTH_ADD("%s%llu", truth_comma(), value); }

TRUTH_NOINLINE static void truth_f4(float value) { TRUTH_ADD("%s\"f4:%a\"", truth_comma(), (double)value); }

TRUTH_NOINLINE static void truth_f8(double value) { TRUTH_ADD("%s\"f8:%a\"", truth_comma(), value); }

TRUTH_NOINLINE static void truth_s(const char* text) {
  TRUTH_ADD("%s\"s:", truth_comma());
  for (; *text; text++) TRUTH_ADD("%02x", (unsigned char)*text);
  TRUTH_ADD("\"");
}

/* The value must come out as a typed error. */
TRUTH_NOINLINE static void truth_error(void) { TRUTH_ADD("%s\"error\"", truth_comma()); }

/* The value, or a typed error, but nothing else. */
TRUTH_NOINLINE static void truth_maybe(unsigned long long value) {
  TRUTH_ADD("%s{\"maybe\":%llu}", truth_comma(), value);
}

TRUTH_NOINLINE static void truth_close(void) {
  TRUTH_ADD("]}\n");
  if (truth_fd >= 0 && write(truth_fd, truth_now.text, (size_t)truth_now.used) != truth_now.used) abort();
}

#endif /* TRUTH_LOG_H */
