// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// What a program looks like that was compiled with a usdt.bpf.h since libbpf 1.7, which lays specs out otherwise and
// knows an index register: member names and types are those of its struct __bpf_usdt_arg_spec, the program is ours. It
// records what it finds in the spec of each hit, beside the value of the operands with an index.
/* libbpf's headers want the kernel's before them. */
/* clang-format off */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
/* clang-format on */

#include "hits.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum arg_type { CONST, REG, REG_DEREF, SIB };

struct arg_spec {
  __u64 val_off;
  enum arg_type arg_type : 8;
  __u16 idx_reg_off : 12;
  __u16 scale_bitshift : 4;
  __u8 __reserved : 8;
  short reg_off;
  bool arg_signed;
  char arg_bitshift;
};

struct spec {
  struct arg_spec args[12];
  __u64 usdt_cookie;
  short arg_cnt;
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 256);
  __type(key, int);
  __type(value, struct spec);
} __bpf_usdt_specs SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);
} events SEC(".maps");

static __always_inline int indexed(void* ctx, const struct arg_spec* spec, long long* value) {
  __u64 base, index;

  if (bpf_probe_read_kernel(&base, sizeof(base), ctx + spec->reg_off) ||
      bpf_probe_read_kernel(&index, sizeof(index), ctx + spec->idx_reg_off))
    return -1;
  return bpf_probe_read_user(value, sizeof(*value), (void*)(base + (index << spec->scale_bitshift) + spec->val_off));
}

SEC("usdt") int on_hit(void* ctx) {
  int id = bpf_get_attach_cookie(ctx);
  struct spec* spec = bpf_map_lookup_elem(&__bpf_usdt_specs, &id);
  struct hit* hit;

  if (!spec) return 0;
  hit = bpf_ringbuf_reserve(&events, sizeof(*hit), 0);
  if (!hit) return 0;
  __builtin_memset(hit, 0, sizeof(*hit));
  for (int i = 0; i < 12; i++) {
    hit->error[i] = spec->args[i].arg_type;
    hit->size[i] = (64u - (__u8)spec->args[i].arg_bitshift) / 8;
    if (spec->args[i].arg_type == SIB && indexed(ctx, &spec->args[i], &hit->value[i])) hit->error[i] = -1;
  }
  hit->cookie = spec->usdt_cookie;
  hit->count = spec->arg_cnt;
  bpf_ringbuf_submit(hit, 0);
  return 0;
}
