/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing.h"

static napi_value arg_value(napi_env env, const struct usdtc_arg* arg) {
  static const char* const kinds[] = {"unknown", "integer", "float",  "boolean", "enum",
                                      "pointer", "text",    "struct", "array"};
  napi_value value = NULL;
  TRY(napi_create_object(env, &value));
  set(env, value, "kind", text_value(env, arg->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[arg->kind] : "unknown"));
  set(env, value, "bytes", number_value(env, arg->bytes));
  set(env, value, "signed", boolean_value(env, arg->flags & USDTC_ARG_SIGNED));
  set(env, value, "result", boolean_value(env, arg->flags & USDTC_ARG_RESULT));
  set(env, value, "name", text_value(env, arg->name));
  set(env, value, "type", text_value(env, arg->type));
  set(env, value, "source", text_value(env, arg->source));
  set(env, value, "refused", text_value(env, arg->refused));
  return value;
}

static napi_value point_value(napi_env env, const usdtc_selection* selection, size_t n) {
  static const char* const kinds[] = {"unknown", "probe", "function", "kernel"};
  struct usdtc_point point = {.size = sizeof(point)};
  napi_value value = NULL, args = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_selection_point(selection, n, &point, &error);
  if (result != 0) return throw_error(env, error, result);
  TRY(napi_create_object(env, &value));
  TRY(napi_create_array_with_length(env, point.arg_count, &args));
  for (uint32_t i = 0; i < point.arg_count; ++i) {
    struct usdtc_arg arg = {.size = sizeof(arg)};
    usdtc_selection_arg(selection, n, i, &arg, NULL);
    TRY(napi_set_element(env, args, i, arg_value(env, &arg)));
  }
  set(env, value, "kind", text_value(env, kinds[point.kind <= USDTC_POINT_KERNEL ? point.kind : 0]));
  set(env, value, "fullName", text_value(env, point.full_name));
  set(env, value, "provider", text_value(env, point.provider));
  set(env, value, "name", text_value(env, point.name));
  set(env, value, "file", text_value(env, point.file));
  set(env, value, "machine", text_value(env, point.machine));
  set(env, value, "pc", u64_value(env, point.pc));
  set(env, value, "hasSemaphore", boolean_value(env, point.flags & USDTC_POINT_HAS_SEMAPHORE));
  set(env, value, "refused", text_value(env, point.refused));
  set(env, value, "args", args);
  return value;
}

napi_value list(napi_env env, napi_callback_info info) {
  napi_value options = NULL, points = NULL;
  size_t count = 1;
  TRY(napi_get_cb_info(env, info, &count, &options, NULL, NULL));
  struct wanted wanted = {.program = NULL};
  usdtc_selection* selection = NULL;
  usdtc_error* error = NULL;
  const bool read = read_search(env, options, &wanted);
  const int result = read ? select_wanted(&wanted, &selection, &error) : 0;
  free_wanted(&wanted);
  if (!read) return napi_throw_type_error(env, NULL, "usdt.list: bad options"), NULL;
  if (result != 0) return throw_error(env, error, result);
  const size_t found = usdtc_selection_count(selection);
  napi_create_array_with_length(env, found, &points);
  for (size_t n = 0; n < found; ++n) {
    napi_value point = point_value(env, selection, n);
    if (!point) break;
    napi_set_element(env, points, (uint32_t)n, point);
  }
  usdtc_selection_free(selection);
  return points;
}
