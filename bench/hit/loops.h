/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What the measured BPF programs have in common: how much they read, and the sum that says they did. */
#ifndef USDT_BENCH_HIT_LOOPS_H
#define USDT_BENCH_HIT_LOOPS_H

/* Arguments to read, and how often at each hit. Constants for the verifier, which removes what is not reached. */
const volatile __u32 hit_args = 0;
const volatile __u32 hit_times = 1;

/* Of all values read at all hits. One process fires, so plain addition will do. */
__u64 hit_sum = 0;

/* What was read is read again. */
#define HIT_AGAIN asm volatile("" ::: "memory")
#define HIT_TIMES(t) for (__u32 t = 0; t < hit_times; t++)
/* Up to 12 times in a row, as the compiler would unroll it for a program that reads a fixed number of arguments. */
#define HIT_ARGS(i, count) _Pragma("unroll") for (__u32 i = 0; i < 12; i++) if (i < (count))

#endif /* USDT_BENCH_HIT_LOOPS_H */
