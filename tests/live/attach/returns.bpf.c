// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// At the entry and the return of functions: what each end of a call sees. returns_test.cpp says what that must be.
#include <usdt/bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct seen {
  __u64 hits;
  __u64 values[2];
  __s64 errors[2];
  __u64 cookie;
};
struct seen at_entry;
struct seen at_return;

static __always_inline void look(const struct usdt_ctx* ctx, struct seen* seen) {
  seen->errors[0] = usdt_arg_bits(ctx, 0, &seen->values[0]);
  seen->errors[1] = usdt_arg_bits(ctx, 1, &seen->values[1]);
  seen->cookie = usdt_cookie(ctx);
  seen->hits++;
}

USDT_PROGRAM(on_call) {
  if (usdt_is_return(ctx))
    look(ctx, &at_return);
  else
    look(ctx, &at_entry);
  return 0;
}
