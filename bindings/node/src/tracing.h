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

/* A question to each hit, and a table; `table.size` 0: none. */
struct question {
  char *where, *by, *value, *histogram;
  struct usdtc_table table;
};

/* All zero before it is read; to be freed whether that went well or not. */
struct wanted {
  struct texts patterns, targets, text_args, values;
  int32_t *pids, *scope, *family;
  size_t pid_count, scope_count, family_count;
  char* program;
  char* record;
  struct question question;
  struct usdtc_plan_options plan;
  struct usdtc_trace_options trace;
};

/* What list() is asked for, and what a tracer is. False: no such options, or no memory. */
bool read_search(napi_env env, napi_value object, struct wanted* wanted);
bool read_trace(napi_env env, napi_value object, struct wanted* wanted);
void free_wanted(struct wanted* wanted);
bool read_question(napi_env env, napi_value object, struct question* question);
void free_question(struct question* question);
/* NULL: none. */
const struct usdtc_table* table_of(const struct question* question);
int select_wanted(const struct wanted* wanted, usdtc_selection** selection, usdtc_error** error);

/* ---- listing.c ---- */

/* list(options) -> points */
napi_value list(napi_env env, napi_callback_info info);

/* ---- recordings.c ---- */

/* openRecording(path, options) -> recording; recordingTake(recording, limit) -> events; recordingRows(recording);
 * recordingCounts(recording); recordingInfo(recording); recordingClose(recording) */
napi_value open_recording(napi_env env, napi_callback_info info);
napi_value recording_take(napi_env env, napi_callback_info info);
napi_value recording_rows(napi_env env, napi_callback_info info);
napi_value recording_counts(napi_env env, napi_callback_info info);
napi_value recording_info(napi_env env, napi_callback_info info);
napi_value recording_close(napi_env env, napi_callback_info info);

/* ---- asking.c ---- */

/* ask(points, options, files) -> asking; askBegin(asking), askStep(asking), askFinish(asking) -> promise of {more,
 * text}; askStop(asking); askNotices(asking); askClose(asking); askOptions() */
napi_value ask(napi_env env, napi_callback_info info);
napi_value ask_begin(napi_env env, napi_callback_info info);
napi_value ask_step(napi_env env, napi_callback_info info);
napi_value ask_finish(napi_env env, napi_callback_info info);
napi_value ask_stop(napi_env env, napi_callback_info info);
napi_value ask_notices(napi_env env, napi_callback_info info);
napi_value ask_close(napi_env env, napi_callback_info info);
napi_value ask_options(napi_env env, napi_callback_info info);

/* ---- tables.c ---- */

/* An array of rows; frees them. */
napi_value rows_value(napi_env env, usdtc_rows* rows);

/* ---- events.c: what was recorded, as objects of JavaScript ---- */

/* A number that takes 64 bits (`wide`) is a bigint. */
napi_value value_value(napi_env env, const struct usdtc_value* value, bool wide, bool boolean);
/* An array of the events of a batch, which is freed; `with_names` says of each whether its arguments' names are wanted,
 * NULL: of all. */
napi_value events_value(napi_env env, usdtc_batch* batch, bool (*with_names)(void* user, uint32_t site), void* user);

/* An object of what max_overhead came to; frees the ledger. */
napi_value overhead_value(napi_env env, usdtc_ledger* ledger);
/* An object of the numbers of all probes together, by their names in the library; frees the ledger. */
napi_value counts_value(napi_env env, usdtc_ledger* ledger);

#endif
