// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// A program as written for libbpf: nothing of it knows of this library. It records all that libbpf's USDT interface
// says of each hit.
#ifdef WITH_VMLINUX
#include "vmlinux.h"
#else
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#endif
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/usdt.bpf.h>

#include "hits.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);
} events SEC(".maps");

static __always_inline int record(struct pt_regs* ctx, long a, long b, long c) {
  struct hit* hit = bpf_ringbuf_reserve(&events, sizeof(*hit), 0);

  if (!hit) return 0;
  for (int i = 0; i < HIT_ARGS; i++) {
    long value;

    hit->error[i] = bpf_usdt_arg(ctx, i, &value);
    hit->value[i] = value;
#ifdef WITHOUT_ARG_SIZE /* libbpf before 1.6 */
    hit->size[i] = -1;
#else
    hit->size[i] = bpf_usdt_arg_size(ctx, i);
#endif
  }
  hit->param[0] = a;
  hit->param[1] = b;
  hit->param[2] = c;
  hit->cookie = bpf_usdt_cookie(ctx);
  hit->count = bpf_usdt_arg_cnt(ctx);
  hit->padding = 0;
  bpf_ringbuf_submit(hit, 0);
  return 0;
}

SEC("usdt") int BPF_USDT(on_hit, int a, long b, void* c) { return record(ctx, a, b, (long)c); }

#ifdef WITH_SLEEPABLE
SEC("usdt.s") int BPF_USDT(on_hit_sleepable, int a, long b, void* c) { return record(ctx, a, b, (long)c); }
#endif

SEC("usdt") int BPF_USDT(on_any) { return bpf_usdt_arg_cnt(ctx) < 0; }

SEC("usdt/./file:provider:name") int plain(struct pt_regs* ctx) {
  long value;

  return bpf_usdt_arg(ctx, 0, &value);
}

/* The longest list of parameters, and a buffer as large as the stack allows with libbpf's own header. */
SEC("usdt")
int BPF_USDT(on_many, int a1, int a2, long a3, long a4, unsigned a5, long a6, __u64 a7, const char* a8, int a9,
             short a10, short a11, signed char a12) {
  char text[256] = {};

  bpf_probe_read_user_str(text, sizeof(text), a8);
  return a1 + a2 + a3 + a4 + a5 + a6 + a7 + a9 + a10 + a11 + a12 + text[0] == 0;
}
