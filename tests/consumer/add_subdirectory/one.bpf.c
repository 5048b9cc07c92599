/* SPDX-License-Identifier: BSD-2-Clause */
/* DEFINES and INCLUDES of usdt_add_bpf() reach the compiler. */
#include <own.h>
#include <usdt/bpf/usdt.bpf.h>

#if FIRST != 1 || SECOND != 4 || OWN != 3
#error "not what CMakeLists.txt says"
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 hits;

USDT_PROGRAM(on_hit) {
  __sync_fetch_and_add(&hits, FIRST);
  return 0;
}
