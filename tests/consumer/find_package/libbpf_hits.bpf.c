/* SPDX-License-Identifier: BSD-2-Clause */
/* The same, written for libbpf: LIBBPF_COMPAT puts our header in the place of its own. */
/* libbpf's headers want the kernel's before them. */
/* clang-format off */
#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/usdt.bpf.h>
/* clang-format on */

#ifndef USDT_BPF_H
#error "libbpf's own header was found first"
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 hits;

SEC("usdt") int BPF_USDT(on_hit, long first) {
  if (first != 0) __sync_fetch_and_add(&hits, 1);
  return 0;
}
