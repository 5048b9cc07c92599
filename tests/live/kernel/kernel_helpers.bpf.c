// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// What kernel_test attaches by every backend: programs that call the helpers.
#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MOST 10

/* [0]: at the entry or the only hit, [1]: at the end of a call. */
__u64 hits[2];
__u64 values[2 * MOST];
__s64 errors[2 * MOST];
__u64 count;
__u64 cookie;
__u64 site_number;
__s64 typed_error;
__s64 typed_value;
char text[64];
__s64 text_length;
/* Each costs the verifier time. */
const volatile __u32 arguments = MOST;
const volatile __u32 text_argument = 0;
const volatile __u8 text_wanted = 0;

USDT_PROGRAM(read_everything) {
  const __u32 end = usdt_is_return(ctx) ? 1 : 0;

#pragma unroll
  for (int n = 0; n < MOST; n++) {
    __u64 bits = 0;

    if (n >= arguments) break;
    errors[end * MOST + n] = usdt_arg_bits(ctx, n, &bits);
    values[end * MOST + n] = bits;
  }
  count = usdt_arg_cnt(ctx);
  cookie = usdt_cookie(ctx);
  site_number = usdt_site(ctx);
  if (text_wanted && !end) text_length = usdt_str(ctx, text_argument, text, sizeof(text));
  hits[end]++;
  return 0;
}

USDT_PROGRAM(read_a_number) {
  int number;

  typed_error = usdt_arg(ctx, 0, &number);
  typed_value = number;
  hits[0]++;
  return 0;
}
