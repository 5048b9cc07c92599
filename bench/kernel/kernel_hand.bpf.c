// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// What one would write by hand, without the context of usdt.bpf.h: the bound from below.
#include <usdt/bpf/usdt.bpf.h>

#include "values.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("uprobe")
int bench_count(void* ctx) {
  bench_hits++;
  return 0;
}

SEC("uprobe")
int bench_slots(void* ctx) {
  __u64 first, second, third;

  bench_hits++;
  if (bench_reads != 3) return 0;  // else the verifier sees what follows in programs that have no such helper
  if (bpf_get_func_arg(ctx, 0, &first) || bpf_get_func_arg(ctx, 1, &second) || bpf_get_func_arg(ctx, 2, &third))
    bench_unread++;
  else
    bench_sum += first + second + (__s32)third;
  return 0;
}

SEC("uprobe")
int bench_registers(void* ctx) {
  __u64 first, second, third;

  bench_hits++;
  if (bench_reads != 2) return 0;
#if defined(__TARGET_ARCH_arm64)
  USDT_LOAD_REG(first, ctx, 0);
  USDT_LOAD_REG(second, ctx, 8);
  USDT_LOAD_REG(third, ctx, 16);
#else
  USDT_LOAD_REG(first, ctx, 112);
  USDT_LOAD_REG(second, ctx, 104);
  USDT_LOAD_REG(third, ctx, 96);
#endif
  bench_sum += first + second + (__s32)third;
  return 0;
}
