/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What the measured BPF programs have in common: how much they read, and the sum that says they did. */
#ifndef USDT_BENCH_HIT_LOOPS_H
#define USDT_BENCH_HIT_LOOPS_H

/* How often all arguments are read at each hit: a constant for the verifier. */
const volatile __u32 hit_times = 1;

/* Of all values read at all hits. One process fires, so plain addition will do. */
__u64 hit_sum = 0;

/* What was read is read again. */
#define HIT_AGAIN asm volatile("" ::: "memory")
#define HIT_TIMES(t) for (__u32 t = 0; t < hit_times; t++)
/* A program that adds up what the expression `read` reads from its `ctx`. */
#define HIT_PROGRAM(section, name, read) \
  SEC(section)                           \
  int name(struct pt_regs* ctx) {        \
    __u64 sum = 0;                       \
                                         \
    HIT_TIMES(t) {                       \
      HIT_AGAIN;                         \
      sum += (read);                     \
    }                                    \
    hit_sum += sum;                      \
    return 0;                            \
  }

/* A program for each number of arguments, as one would write it: PROGRAM(count) is one. */
#define HIT_PROGRAMS(PROGRAM) PROGRAM(1) PROGRAM(3) PROGRAM(6) PROGRAM(12)

#endif /* USDT_BENCH_HIT_LOOPS_H */
