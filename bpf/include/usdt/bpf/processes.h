/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Processes that the user has picked: one layout for BPF programs, C and C++. */
#ifndef USDT_BPF_PROCESSES_H
#define USDT_BPF_PROCESSES_H

#include "types.h"

#define USDT_MAX_PROCESSES 64

struct usdt_processes {
	__u32 count; /* 0: none was picked */
	__u32 tgids[USDT_MAX_PROCESSES];
};

#ifdef __bpf__
/* Whether `tgid` is one of them. Without a branch for each, which would be a path of its own to the verifier. */
static inline __attribute__((always_inline)) int usdt_is_among(const volatile struct usdt_processes *all, __u32 tgid)
{
	__u64 found = 0;

	for (__u32 i = 0; i < USDT_MAX_PROCESSES && i < all->count; i++)
		found |= ((__u64)(all->tgids[i] ^ tgid) - 1) >> 63;
	return found != 0;
}
#endif

#endif /* USDT_BPF_PROCESSES_H */
