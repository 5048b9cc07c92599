/* SPDX-License-Identifier: BSD-2-Clause */
/* Recordings, read again. */
#include "tracing.h"

static const napi_type_tag kRecording = {0x6a0b8c5de13f4d72ULL, 0x9c1f7a20d5b84e13ULL};

struct recording {
  usdtc_recording* recording; /* NULL: closed */
};

static void finalize_recording(napi_env env, void* data, void* hint) {
  (void)env, (void)hint;
  struct recording* recording = data;
  usdtc_recording_free(recording->recording);
  free(recording);
}

napi_value open_recording(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  size_t count = 2;
  TRY(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  struct question question = {.where = NULL};
  char* path = text_of(env, arguments[0]);
  const bool read = path && read_question(env, arguments[1], &question);
  const struct usdtc_replay_options options = {
      .size = sizeof(options), .where = question.where, .table = table_of(&question)};
  usdtc_recording* opened = NULL;
  usdtc_error* error = NULL;
  const int result = read ? usdtc_recording_open(path, &options, &opened, &error) : 0;
  free_question(&question);
  free(path);
  if (!read) return napi_throw_type_error(env, NULL, "usdt.Recording: bad path or options"), NULL;
  if (result != 0) return throw_error(env, error, result);
  struct recording* recording = calloc(1, sizeof(*recording));
  if (!recording) {
    usdtc_recording_free(opened);
    return napi_throw_error(env, NULL, "usdt: no memory"), NULL;
  }
  recording->recording = opened;
  return handle_value(env, recording, &kRecording, finalize_recording);
}

/* The recording behind the first of `count` arguments, which has to be open. */
static struct recording* recording_of(napi_env env, napi_callback_info info, napi_value* arguments, size_t count) {
  TRY(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  struct recording* recording = handle_of(env, arguments[0], &kRecording);
  if (recording && !recording->recording) {
    napi_throw_error(env, NULL, "usdt: the recording is closed");
    return NULL;
  }
  return recording;
}

napi_value recording_take(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
  uint32_t limit = 0;
  struct recording* recording = recording_of(env, info, arguments, 2);
  if (!recording) return NULL;
  TRY(napi_get_value_uint32(env, arguments[1], &limit));
  usdtc_batch* batch = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_recording_take(recording->recording, limit, &batch, &error);
  return result == 0 ? events_value(env, batch, NULL, NULL) : throw_error(env, error, result);
}

napi_value recording_rows(napi_env env, napi_callback_info info) {
  napi_value argument = NULL;
  struct recording* recording = recording_of(env, info, &argument, 1);
  if (!recording) return NULL;
  usdtc_rows* rows = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_recording_rows(recording->recording, &rows, &error);
  return result == 0 ? rows_value(env, rows) : throw_error(env, error, result);
}

napi_value recording_counts(napi_env env, napi_callback_info info) {
  napi_value argument = NULL;
  struct recording* recording = recording_of(env, info, &argument, 1);
  if (!recording) return NULL;
  usdtc_ledger* ledger = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_recording_ledger(recording->recording, &ledger, &error);
  return result == 0 ? counts_value(env, ledger) : throw_error(env, error, result);
}

napi_value recording_info(napi_env env, napi_callback_info info) {
  napi_value argument = NULL, value = NULL;
  struct recording* recording = recording_of(env, info, &argument, 1);
  if (!recording) return NULL;
  struct usdtc_recording_info about = {.size = sizeof(about)};
  usdtc_recording_read(recording->recording, &about, NULL);
  TRY(napi_create_object(env, &value));
  set(env, value, "madeBy", text_value(env, about.made_by));
  set(env, value, "kernel", text_value(env, about.kernel));
  set(env, value, "machine", text_value(env, about.machine));
  set(env, value, "cut", text_value(env, about.cut));
  return value;
}

napi_value recording_close(napi_env env, napi_callback_info info) {
  napi_value argument = NULL;
  struct recording* recording = recording_of(env, info, &argument, 1);
  if (!recording) return NULL;
  usdtc_recording_free(recording->recording);
  recording->recording = NULL;
  return undefined_value(env);
}
