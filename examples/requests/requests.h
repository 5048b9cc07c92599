/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What both sides know: one record for each request that has ended. */
#pragma once

#include <linux/types.h>

struct request {
  __u64 id;
  __u64 nanoseconds;
  __u32 pid;
  __s32 status;
  char path[48];
};

/* A request that is under way, in the map where the two programs meet. The numbers are a process's own. */
struct request_key {
  __u64 id;
  __u64 pid;
};
struct request_begun {
  __u64 at; /* CLOCK_MONOTONIC, ns */
  char path[48];
};
