/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What hits.bpf.c records of each hit, for it and for its reader. */
#ifndef HITS_H
#define HITS_H

#define HIT_ARGS 24

struct hit {
  long long value[HIT_ARGS]; /* bpf_usdt_arg() */
  int error[HIT_ARGS];
  int size[HIT_ARGS]; /* bpf_usdt_arg_size(), -1 where the header has none */
  long long param[3]; /* as BPF_USDT passes them */
  long long cookie;
  int count;
  int padding;
};

#endif /* HITS_H */
