/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The record both sides of 04_own_program know. */
#pragma once

#include <linux/types.h>

struct order {
  __u64 id;
  __u64 cookie;
  __u32 pid;
  char customer[44];
};
