/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the addon usdt_tracing, over <usdt/usdtc.h>. index.js makes classes of it. */
#ifndef USDT_NODE_TRACING_H
#define USDT_NODE_TRACING_H

#include <usdt/usdtc.h>

#include "napi_helpers.h"

/* ---- errors.c: a usdtc_error is freed with what is made of it ---- */

/* An Error of JavaScript. */
napi_value error_value(napi_env env, usdtc_error* error, int result);
/* Throws it, and returns NULL. */
napi_value throw_error(napi_env env, usdtc_error* error, int result);

/* ---- options.c: options, which index.js has made complete ---- */

struct texts {
  char** all;
  uint32_t count;
};

/* All zero before it is read; to be freed whether that went well or not. */
struct wanted {
  struct texts patterns, targets, text_args, values;
  int32_t *pids, *scope, *family;
  size_t pid_count, scope_count, family_count;
  char* program;
  struct usdtc_plan_options plan;
  struct usdtc_trace_options trace;
};

/* What list() is asked for, and what a tracer is. False: no such options, or no memory. */
bool read_search(napi_env env, napi_value object, struct wanted* wanted);
bool read_trace(napi_env env, napi_value object, struct wanted* wanted);
void free_wanted(struct wanted* wanted);
int select_wanted(const struct wanted* wanted, usdtc_selection** selection, usdtc_error** error);

/* ---- listing.c ---- */

/* list(options) -> points */
napi_value list(napi_env env, napi_callback_info info);

/* ---- events.c: what was recorded, as objects of JavaScript ---- */

/* `with_names`: of the arguments, too. */
napi_value event_value(napi_env env, const usdtc_event* event, const struct usdtc_event_info* info, bool with_names);
napi_value counts_value(napi_env env, const struct usdtc_counts* counts);

#endif
