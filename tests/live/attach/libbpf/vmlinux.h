/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A stand-in for the vmlinux.h that `bpftool btf dump file /sys/kernel/btf/vmlinux format c` writes: its guard, and of
 * its types those the programs beside it and the headers they include want. */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum {
  false = 0,
  true = 1,
};

enum bpf_map_type {
  BPF_MAP_TYPE_HASH = 1,
  BPF_MAP_TYPE_ARRAY = 2,
  BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
  BPF_F_MMAPABLE = 1024,
};

struct pt_regs {
  unsigned long words[36];
};
struct user_pt_regs {
  unsigned long words[36];
};

#endif /* __VMLINUX_H__ */
