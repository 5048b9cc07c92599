/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing.h"

static napi_value wide_value(napi_env env, struct usdtc_wide wide) {
  const bool negative = wide.high < 0;
  uint64_t words[2] = {wide.low, (uint64_t)wide.high};
  if (negative) { /* sign and magnitude */
    words[0] = ~words[0] + 1;
    words[1] = ~words[1] + (words[0] == 0);
  }
  napi_value value = NULL;
  TRY(napi_create_bigint_words(env, negative, words[1] != 0 ? 2 : 1, words, &value));
  return value;
}

static napi_value range_value(napi_env env, const usdtc_rows* rows, size_t n, uint32_t number) {
  struct usdtc_range range = {.size = sizeof(range)};
  napi_value value = NULL;
  usdtc_rows_range(rows, n, number, &range, NULL);
  TRY(napi_create_object(env, &value));
  const bool real = range.flags & USDTC_RANGE_REAL;
  set(env, value, "first", real ? number_value(env, range.real_first) : wide_value(env, range.first));
  set(env, value, "last", real ? number_value(env, range.real_end) : wide_value(env, range.last));
  set(env, value, "count", number_value(env, (double)range.count));
  return value;
}

static napi_value row_value(napi_env env, const usdtc_rows* rows, size_t n) {
  struct usdtc_row row = {.size = sizeof(row)};
  napi_value value = NULL, keys = NULL, ranges = NULL;
  usdtc_rows_row(rows, n, &row, NULL);
  TRY(napi_create_object(env, &value));
  TRY(napi_create_array_with_length(env, row.key_count, &keys));
  TRY(napi_create_array_with_length(env, row.range_count, &ranges));
  for (uint32_t i = 0; i < row.key_count; ++i) {
    struct usdtc_value key = {.size = sizeof(key)};
    usdtc_rows_key(rows, n, i, &key, NULL);
    napi_set_element(env, keys, i, value_value(env, &key, true, false));
  }
  for (uint32_t i = 0; i < row.range_count; ++i) napi_set_element(env, ranges, i, range_value(env, rows, n, i));
  set(env, value, "keys", keys);
  set(env, value, "count", number_value(env, (double)row.count));
  const bool real = row.flags & USDTC_ROW_REAL;
  set(env, value, "sum", real ? number_value(env, row.real_sum) : wide_value(env, row.sum));
  set(env, value, "minimum", real ? number_value(env, row.real_minimum) : wide_value(env, row.minimum));
  set(env, value, "maximum", real ? number_value(env, row.real_maximum) : wide_value(env, row.maximum));
  set(env, value, "ranges", ranges);
  return value;
}

napi_value rows_value(napi_env env, usdtc_rows* rows) {
  napi_value all = NULL;
  napi_create_array(env, &all);
  for (size_t n = 0; n < usdtc_rows_count(rows); ++n) {
    napi_handle_scope scope = NULL;
    napi_open_handle_scope(env, &scope);
    const napi_value row = row_value(env, rows, n);
    if (row) napi_set_element(env, all, (uint32_t)n, row);
    napi_close_handle_scope(env, scope);
  }
  usdtc_rows_free(rows);
  return all;
}
