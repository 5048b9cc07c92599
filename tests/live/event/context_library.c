// SPDX-License-Identifier: BSD-2-Clause
// A library whose threads have a context.
#ifdef LARGE
__thread char filling[LARGE];
#endif
__thread void* volatile otel_thread_ctx_v1;
void* volatile* place_of_context(void) { return &otel_thread_ctx_v1; }
