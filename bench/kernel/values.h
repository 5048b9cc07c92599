/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What the measured BPF programs have in common. */
#ifndef USDT_BENCH_KERNEL_VALUES_H
#define USDT_BENCH_KERNEL_VALUES_H

/* Arguments to read: 0, 1, 2 or 3. A constant for the verifier, which removes what is not reached. */
const volatile __u32 bench_reads = 0;

/* One process hits, so plain addition will do. */
__u64 bench_hits = 0;
__u64 bench_sum = 0;
__u64 bench_unread = 0;

#endif /* USDT_BENCH_KERNEL_VALUES_H */
