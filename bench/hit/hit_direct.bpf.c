// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// What one would write by hand for the sites of sites.S, knowing where each argument is; and a program that does
// nothing.
#include <linux/ptrace.h>
#include <usdt/bpf/usdt.bpf.h>

#include "loops.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("uprobe")
int hit_empty(struct pt_regs* ctx) {
  HIT_TIMES(t) HIT_AGAIN;
  return 0;
}

static __always_inline __u64 register_sum(struct pt_regs* ctx, const __u32 count) {
  __u64 sum = ctx->rdi;

  if (count >= 3) sum += (__s32)ctx->rsi + ctx->rdx;
  if (count >= 6) sum += (__u32)ctx->rcx + ctx->r8 + ctx->r9;
  if (count >= 12) sum += ctx->rax + (__s32)ctx->rbx + ctx->r10 + (__u32)ctx->r11 + ctx->r12 + ctx->r13;
  return sum;
}

#define REGISTERS(count) HIT_PROGRAM("uprobe", hit_registers_##count, register_sum(ctx, count))
HIT_PROGRAMS(REGISTERS)

/* A plain read for each, as everyone writes it. */
static __always_inline __u64 load(__u64 address) {
  __u64 value = 0;

  bpf_probe_read_user(&value, sizeof(value), (const void*)address);
  return value;
}

static __always_inline __s32 load4(__u64 address) {
  __s32 value = 0;

  bpf_probe_read_user(&value, sizeof(value), (const void*)address);
  return value;
}

/* The second and the fourth of six are of 4 bytes. */
static __always_inline __u64 memory_sum(struct pt_regs* ctx, const __u32 count) {
  const __u64 frame = ctx->rbp;
  __u64 sum = load(frame - 8);

  if (count >= 3) sum += load4(frame - 16) + load(frame - 24);
  if (count >= 6) sum += load4(frame - 32) + load(frame - 40) + load(frame - 48);
  if (count >= 12) {
    sum += load(frame - 56) + load4(frame - 64) + load(frame - 72);
    sum += load4(frame - 80) + load(frame - 88) + load(frame - 96);
  }
  return sum;
}

#define MEMORY(count) HIT_PROGRAM("uprobe", hit_memory_##count, memory_sum(ctx, count))
HIT_PROGRAMS(MEMORY)

static __always_inline __u64 mixed_sum(struct pt_regs* ctx) {
  __u64 sum = load(ctx->rbp - 8) + load4(ctx->rbp - 16) + load(ctx->rbp - 24) + load4(ctx->rbp - 32);

  sum += load(ctx->rbp - 40) + load(ctx->r12) + load(ctx->r13 + 16) + 12;
  return sum + ctx->rdi + (__s32)ctx->rsi + ctx->rdx + (__u32)ctx->rcx;
}

HIT_PROGRAM("uprobe", hit_mixed_12, mixed_sum(ctx))
