/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* __u8 .. __u64 for BPF programs, with or without vmlinux.h, and for user space. */
#ifndef USDT_BPF_TYPES_H
#define USDT_BPF_TYPES_H

#ifndef __VMLINUX_H__ /* which defines them itself */
#include <linux/types.h>
#endif

#endif /* USDT_BPF_TYPES_H */
