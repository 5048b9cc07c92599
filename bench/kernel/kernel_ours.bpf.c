// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// The program under measurement, written once and loaded for each kind of attachment and each carrier.
#include <usdt/bpf/usdt.bpf.h>

#include "values.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

// Of vfs_llseek(file, offset, whence) and vfs_write(file, buf, count, pos).
static __always_inline int read_three(const struct usdt_ctx* ctx, __u64* sum) {
  void* file;
  __s64 second;
  __s32 third;
  int error = usdt_arg(ctx, 0, &file);

  if (!error) error = usdt_arg(ctx, 1, &second);
  if (!error) error = usdt_arg(ctx, 2, &third);
  if (!error) *sum = (__u64)file + second + third;
  return error;
}

// Of sys_enter(regs, id).
static __always_inline int read_two(const struct usdt_ctx* ctx, __u64* sum) {
  void* regs;
  __s64 id;
  int error = usdt_arg(ctx, 0, &regs);

  if (!error) error = usdt_arg(ctx, 1, &id);
  if (!error) *sum = (__u64)regs + id;
  return error;
}

// What a kretprobe has: the return value.
static __always_inline int read_one(const struct usdt_ctx* ctx, __u64* sum) {
  __s64 result;
  const int error = usdt_arg(ctx, 0, &result);

  if (!error) *sum = result;
  return error;
}

USDT_PROGRAM(bench_program) {
  __u64 sum = 0;
  int error = 0;

  bench_hits++;
  if (bench_reads == 3) error = read_three(ctx, &sum);
  if (bench_reads == 2) error = read_two(ctx, &sum);
  if (bench_reads == 1) error = read_one(ctx, &sum);
  if (error)
    bench_unread++;
  else
    bench_sum += sum;
  return 0;
}
