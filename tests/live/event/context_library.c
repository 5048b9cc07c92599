// SPDX-License-Identifier: BSD-2-Clause
// A library whose threads have a context.
#ifdef LARGE
__thread char filling[LARGE];
#endif
#ifndef VARIABLE
#define VARIABLE otel_thread_ctx_v1
#endif
__thread void* volatile VARIABLE;
void* volatile* place_of_context(void) { return &VARIABLE; }
