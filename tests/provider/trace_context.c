// SPDX-License-Identifier: BSD-2-Clause
// Publishes contexts as it is told, a line each, and says where the thread's record is. BY_FUNCTIONS: by those of
// libusdt-provider, without the header that has them all.
#include <stdio.h>
#ifdef BY_FUNCTIONS
#include <string.h>
#include <usdt/provider.h>
extern __thread void* otel_thread_ctx_v1;
#define usdt_context_publish usdtp_context_publish
#define usdt_context_set usdtp_context_set
#define usdt_context_add usdtp_context_add
#define usdt_context_clear usdtp_context_clear
#else
#include <usdt/trace_context.h>
#endif

int main(void) {
  const char* names[] = {"http.route", "user.id", "\xc3\xa4"};
  const uint8_t trace_id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  const uint8_t span_id[8] = {0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8};
  char line[16], text[256] = {0};
  memset(text, 'x', sizeof text - 1);
  while (fgets(line, sizeof line, stdin)) {
    int result = 0;
    if (line[0] == 'p') result = usdt_context_publish("shop", names, (size_t)(line[1] - '0'));
    if (line[0] == 'n') result = usdt_context_publish(NULL, NULL, 0);
    if (line[0] == 'w') result = usdt_context_publish("shop", NULL, 257);
    if (line[0] == 's') usdt_context_set(trace_id, span_id, 1);
    if (line[0] == 'c') usdt_context_clear();
    if (line[0] == 'a') result = usdt_context_add((unsigned)(line[1] - '0'), "/cart", 5);
    if (line[0] == 'l') result = usdt_context_add(0, text, 255);
    if (line[0] == 't') result = usdt_context_add(0, text, 256);
    printf("%d %p\n", result, (void*)otel_thread_ctx_v1);
    fflush(stdout);
  }
  return 0;
}
