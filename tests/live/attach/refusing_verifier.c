/* SPDX-License-Identifier: BSD-2-Clause */
/* For LD_PRELOAD: a kernel whose verifier refuses every program called $REFUSED_PROGRAM (its first 15 characters), with
 * 2,000 lines of log where a log is asked for. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static long refuse(const union bpf_attr* attr) {
  if (attr->log_level && attr->log_buf) {
    char* log = (char*)(unsigned long)attr->log_buf;
    size_t at = 0;

    for (int i = 0; i < 2000 && at + 80 < attr->log_size; i++) at += (size_t)sprintf(log + at, "%d: (b7) r0 = 0\n", i);
    sprintf(log + at, "R2 is not to my taste\nprocessed 2000 insns (limit 1000000)\n");
  }
  errno = EACCES;
  return -1;
}

long syscall(long number, ...) {
  static long (*next)(long, ...);
  long words[6];
  va_list args;

  va_start(args, number);
  for (int i = 0; i < 6; i++) words[i] = va_arg(args, long);
  va_end(args);
  if (number == SYS_bpf && words[0] == BPF_PROG_LOAD) {
    const union bpf_attr* attr = (const union bpf_attr*)words[1];
    const char* name = getenv("REFUSED_PROGRAM");

    if (name && !strncmp(attr->prog_name, name, BPF_OBJ_NAME_LEN - 1)) return refuse(attr);
  }
  if (!next) next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
