/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What the measured BPF programs have in common: how much they read, and the sum that says they did. */
#ifndef USDT_BENCH_HIT_LOOPS_H
#define USDT_BENCH_HIT_LOOPS_H

/* Arguments to read (1, 3, 6 or 12), and how often at each hit. Constants for the verifier, which removes what is not
 * reached. */
const volatile __u32 hit_args = 0;
const volatile __u32 hit_times = 1;

/* Of all values read at all hits. One process fires, so plain addition will do. */
__u64 hit_sum = 0;

/* What was read is read again. */
#define HIT_AGAIN asm volatile("" ::: "memory")
#define HIT_TIMES(t) for (__u32 t = 0; t < hit_times; t++)
/* The sum READ(1), READ(3), READ(6) or READ(12) gives: a program for each number of arguments, as one would write it.
 * The verifier removes the other three. */
#define HIT_SUM(READ) (hit_args == 1 ? READ(1) : hit_args == 3 ? READ(3) : hit_args == 6 ? READ(6) : READ(12))

#endif /* USDT_BENCH_HIT_LOOPS_H */
