// SPDX-License-Identifier: BSD-2-Clause
#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* BLOCK */
