// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// Programs as users write them, one for each helper of usdt.bpf.h; own_programs_test.cpp says what they must have seen.
#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MOST 8

__u64 hits;
__u64 values[MOST];
__s64 errors[MOST];
__s64 sizes[MOST];
__s64 kinds[MOST];
__u64 count;
__u64 cookie;
__u64 site;
char text[64];
__s64 text_length;

USDT_PROGRAM(read_all) {
#pragma unroll
  for (int n = 0; n < MOST; n++) {
    errors[n] = usdt_arg_bits(ctx, n, &values[n]);
    sizes[n] = usdt_arg_size(ctx, n);
    kinds[n] = usdt_arg_kind(ctx, n);
  }
  count = usdt_arg_cnt(ctx);
  cookie = usdt_cookie(ctx);
  site = usdt_site(ctx);
  hits++;
  return 0;
}

// What PlanOptions::where says of each hit.
USDT_PROGRAM(ask_first) {
  __u64 answer = usdt_filter(ctx);

  if (answer < MOST) sizes[answer]++;
  if (answer == USDT_YES) errors[0] = usdt_arg_bits(ctx, 1, &values[0]);
  hits++;
  return 0;
}

USDT_PROGRAM(read_site) {
  errors[0] = usdt_arg_bits(ctx, 0, &values[0]);
  cookie = usdt_cookie(ctx);
  site = usdt_site(ctx);
  hits++;
  return 0;
}

USDT_PROGRAM(read_typed) {
  const char* pointer;
  __u8 byte;
  int number;
  __u16 word;

  errors[0] = usdt_arg(ctx, 0, &pointer);
  errors[1] = usdt_arg(ctx, 1, &number);
  errors[2] = usdt_arg(ctx, 1, &byte);
  errors[3] = usdt_arg(ctx, 2, &word);
  values[0] = (__u64)pointer;
  values[1] = number;
  values[2] = byte;
  values[3] = word;
  hits++;
  return 0;
}

const volatile __u32 read_count = 3, read_times = 4;

static __always_inline __u64 sum_of(const struct usdt_ctx* ctx, const __u32 count) {
  __u64 sum = 0;

#pragma unroll
  for (__u32 n = 0; n < count; n++) {
    __u64 value;

    usdt_arg_bits(ctx, n, &value);
    sum += value;
  }
  return sum;
}

/* In a loop compilers move out of it, and so before its tests, what they can. */
USDT_PROGRAM(read_in_a_loop) {
  __u64 sum = 0;

  for (__u32 i = 0; i < read_times; i++) {
    struct usdt_ctx again = *ctx;

    asm volatile("" : "+r"(again.cookie)::"memory");
    sum += read_count == 1   ? sum_of(&again, 1)
           : read_count == 3 ? sum_of(&again, 3)
           : read_count == 6 ? sum_of(&again, 6)
                             : sum_of(&again, 12);
  }
  values[0] = sum;
  hits++;
  return 0;
}

#define KEEP(n) \
  int kept_##n; \
  errors[(n) % MOST] = usdt_arg(ctx, n, &kept_##n)

USDT_PROGRAM(keep_three) {
  KEEP(0);
  KEEP(1);
  KEEP(2);
  values[0] = kept_0 + kept_1 + kept_2;
  return 0;
}

USDT_PROGRAM(keep_nine) {
  KEEP(0);
  KEEP(1);
  KEEP(2);
  KEEP(3);
  KEEP(4);
  KEEP(5);
  KEEP(6);
  KEEP(7);
  KEEP(8);
  values[0] = kept_0 + kept_1 + kept_2 + kept_3 + kept_4 + kept_5 + kept_6 + kept_7 + kept_8;
  return 0;
}

USDT_PROG(take_typed, const char* pointer, int number, __u16 word) {
  values[0] = (__u64)pointer;
  values[1] = number;
  values[2] = word;
  cookie = usdt_cookie(ctx);
  hits++;
  return 0;
}

USDT_PROG(take_twelve, int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k, int l) {
  values[0] = (__u64)((((((a * 2 + b) * 2 + c) * 2 + d) * 2 + e) * 2 + f) * 2 + g);
  values[1] = (__u64)((((h * 2 + i) * 2 + j) * 2 + k) * 2 + l);
  hits++;
  return 0;
}

USDT_PROG(take_nothing) {
  hits++;
  return 0;
}

USDT_PROGRAM(read_memory) {
  errors[0] = usdt_arg_bits(ctx, 0, &values[0]);
  text_length = usdt_str(ctx, 1, text, sizeof(text));
  hits++;
  return 0;
}

/* For no attach point: the application attaches them, if at all. */
SEC("raw_tp/sys_enter") int beside(void* ctx) { return 0; }
SEC("?raw_tp/sys_exit") int asleep(void* ctx) { return 0; }
