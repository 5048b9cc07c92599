// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// A program that does nothing: what a hit costs is then the kernel's way to it and back.
#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("uprobe") int on_hit(void* ctx) { return 0; }
