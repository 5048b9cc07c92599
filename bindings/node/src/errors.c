/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing.h"

static const char* kind_name(uint32_t kind) {
  static const char* const names[] = {
      "",          "invalid_argument", "syntax",  "not_found", "no_permission", "not_supported",
      "malformed", "changed",          "limit",   "io",        "type_mismatch", "stopped",
      "verifier",  "no_memory",        "internal"};
  return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "internal";
}

napi_value error_value(napi_env env, usdtc_error* error, int result) {
  napi_value value = NULL;
  napi_create_error(env, NULL, text_value(env, usdtc_error_message(error)), &value);
  set(env, value, "kind", text_value(env, kind_name(usdtc_error_kind(error))));
  set(env, value, "errno", number_value(env, result));
  if (usdtc_error_column(error) >= 0) set(env, value, "column", number_value(env, (double)usdtc_error_column(error)));
  if (usdtc_error_log(error)[0]) set(env, value, "log", text_value(env, usdtc_error_log(error)));
  usdtc_error_free(error);
  return value;
}

napi_value throw_error(napi_env env, usdtc_error* error, int result) {
  napi_throw(env, error_value(env, error, result));
  return NULL;
}
