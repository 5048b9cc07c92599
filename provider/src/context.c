// SPDX-License-Identifier: BSD-2-Clause
// What <usdt/trace_context.h> does, as functions. A file of its own: programs that are linked with the archive have the
// variable of threads only if they ask for it.
#include <usdt/provider.h>
#include <usdt/trace_context.h>

void usdtp_context_set(const uint8_t trace_id[16], const uint8_t span_id[8], unsigned flags) {
  usdt_context_set(trace_id, span_id, flags);
}

int usdtp_context_add(unsigned key, const char* text, size_t size) { return usdt_context_add(key, text, size); }

void usdtp_context_clear(void) { usdt_context_clear(); }

int usdtp_context_publish(const char* service, const char* const* names, size_t count) {
  return usdt_context_publish(service, names, count);
}
