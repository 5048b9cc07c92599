/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>

#include "tracing.h"

napi_value value_value(napi_env env, const struct usdtc_value* value, bool wide, bool boolean) {
  napi_value out = NULL;
  switch (value->kind) {
    case USDTC_VALUE_SIGNED:
      if (wide)
        napi_create_bigint_int64(env, value->number.i, &out);
      else
        napi_create_int64(env, value->number.i, &out);
      return out;
    case USDTC_VALUE_UNSIGNED:
      if (boolean) return boolean_value(env, value->number.u != 0);
      return wide ? u64_value(env, value->number.u) : number_value(env, (double)value->number.u);
    case USDTC_VALUE_FLOAT:
      return number_value(env, value->number.f);
    case USDTC_VALUE_TEXT:
      napi_create_string_utf8(env, value->text.data, value->text.length, &out);
      return out;
    case USDTC_VALUE_BYTES:
      napi_create_buffer_copy(env, value->text.length, value->text.data, NULL, &out);
      return out;
    case USDTC_VALUE_UNREADABLE:
      break;
  }
  if (value->flags & USDTC_VALUE_NULL) return text_value(env, NULL);
  napi_value reason = NULL;
  napi_create_string_utf8(env, value->text.data ? value->text.data : "", value->text.length, &reason);
  napi_create_object(env, &out);
  set(env, out, "unreadable", reason);
  return out;
}

static void add_values(napi_env env, const usdtc_event* event, const struct usdtc_event_info* info, napi_value object,
                       bool with_names) {
  napi_value args = NULL, names = NULL, values = NULL, truncated = NULL;
  uint32_t plain = 0, cut = 0;
  napi_create_array(env, &args);
  if (with_names) napi_create_array(env, &names);
  for (uint32_t n = 0; n < info->arg_count; ++n) {
    struct usdtc_arg arg = {.size = sizeof(arg)};
    struct usdtc_value value = {.size = sizeof(value)};
    if (usdtc_event_arg(event, n, &arg, NULL) != 0 || usdtc_event_value(event, n, &value, NULL) != 0) continue;
    if (arg.flags & USDTC_ARG_HIDDEN) continue;
    const napi_value shown = value_value(env, &value, arg.bytes == 8, arg.kind == USDTC_TYPE_BOOLEAN);
    if (arg.flags & USDTC_ARG_DERIVED) {
      if (!values) napi_create_object(env, &values);
      set(env, values, arg.name ? arg.name : "", shown);
    } else if (arg.flags & USDTC_ARG_RESULT) {
      set(env, object, "result", shown);
    } else {
      if (value.flags & USDTC_VALUE_TRUNCATED) {
        if (!truncated) napi_create_array(env, &truncated);
        napi_set_element(env, truncated, cut++, number_value(env, plain));
      }
      if (with_names) napi_set_element(env, names, plain, text_value(env, arg.name));
      napi_set_element(env, args, plain++, shown);
    }
  }
  set(env, object, "args", args);
  if (names) set(env, object, "names", names);
  if (values) set(env, object, "values", values);
  if (truncated) set(env, object, "truncated", truncated);
}

static napi_value event_value(napi_env env, const usdtc_event* event, const struct usdtc_event_info* info,
                              bool with_names) {
  napi_value object = NULL, comm = NULL;
  TRY(napi_create_object(env, &object));
  napi_create_string_utf8(env, info->comm.data, info->comm.length, &comm);
  set(env, object, "probe", text_value(env, info->full_name));
  set(env, object, "provider", text_value(env, info->provider));
  set(env, object, "name", text_value(env, info->name));
  set(env, object, "time", u64_value(env, info->time));
  set(env, object, "wallTime", u64_value(env, info->wall_time));
  set(env, object, "pid", number_value(env, info->pid));
  set(env, object, "tid", number_value(env, info->tid));
  set(env, object, "cpu", number_value(env, info->cpu));
  set(env, object, "comm", comm);
  set(env, object, "site", number_value(env, info->site));
  if (info->duration) set(env, object, "duration", u64_value(env, info->duration));
  set(env, object, "weight", number_value(env, info->weight));
  add_values(env, event, info, object, with_names);
  return object;
}

napi_value events_value(napi_env env, usdtc_batch* batch, bool (*with_names)(void* user, uint32_t site), void* user) {
  napi_value events = NULL;
  const size_t taken = usdtc_batch_count(batch);
  napi_create_array_with_length(env, taken, &events);
  for (size_t i = 0; i < taken; ++i) {
    napi_handle_scope scope = NULL;
    napi_open_handle_scope(env, &scope);
    const usdtc_event* taken_event = usdtc_batch_event(batch, i);
    struct usdtc_event_info event_info = {.size = sizeof(event_info)};
    usdtc_event_read(taken_event, &event_info, NULL);
    const bool names = !with_names || with_names(user, event_info.site);
    const napi_value event = event_value(env, taken_event, &event_info, names);
    if (event) napi_set_element(env, events, (uint32_t)i, event);
    napi_close_handle_scope(env, scope);
  }
  usdtc_batch_free(batch);
  return events;
}

/* "ring_full" as JavaScript has it: "ringFull". */
static void camel_case(const char* name, char* out, size_t size) {
  size_t length = 0;
  for (; *name && length + 1 < size; ++name) {
    const bool upper = *name == '_' && name[1];
    if (upper) ++name;
    out[length++] = (char)(upper ? toupper((unsigned char)*name) : *name);
  }
  out[length] = 0;
}

static napi_value plain_overhead(napi_env env, const struct usdtc_overhead* so_far) {
  napi_value value = NULL;
  TRY(napi_create_object(env, &value));
  set(env, value, "allowed", number_value(env, so_far->allowed));
  set(env, value, "caused", number_value(env, so_far->caused));
  set(env, value, "lookedAt", number_value(env, so_far->looked_at));
  set(env, value, "windows", number_value(env, (double)so_far->windows));
  set(env, value, "ofHit", number_value(env, (double)so_far->of_hit));
  set(env, value, "lookedFor", number_value(env, (double)so_far->looked_for));
  set(env, value, "lasted", number_value(env, (double)so_far->lasted));
  set(env, value, "ofProcessors", boolean_value(env, so_far->flags & USDTC_OVERHEAD_OF_PROCESSORS));
  set(env, value, "clocked", boolean_value(env, so_far->flags & USDTC_OVERHEAD_CLOCKED));
  set(env, value, "trouble", text_value(env, so_far->trouble));
  return value;
}

napi_value overhead_value(napi_env env, usdtc_ledger* ledger) {
  struct usdtc_overhead so_far = {.size = sizeof(so_far)};
  usdtc_error* error = NULL;
  const int result = usdtc_ledger_overhead(ledger, &so_far, &error);
  napi_value value = result == 0 ? plain_overhead(env, &so_far) : NULL;
  usdtc_ledger_free(ledger);
  return result == 0 ? value : throw_error(env, error, result);
}

napi_value counts_value(napi_env env, usdtc_ledger* ledger) {
  enum { MOST = 64 }; /* later versions of the library have more numbers than this one, but not so many */
  uint64_t values[MOST] = {0};
  napi_value counts = NULL;
  usdtc_ledger_values(ledger, SIZE_MAX, values, MOST, NULL);
  usdtc_ledger_free(ledger);
  TRY(napi_create_object(env, &counts));
  struct usdtc_count_info info = {.size = sizeof(info)};
  for (size_t n = 0; n < MOST && usdtc_count_describe(n, &info, NULL) == 0; ++n) {
    char name[64];
    camel_case(info.name, name, sizeof(name));
    set(env, counts, name, values[n] == UINT64_MAX ? text_value(env, NULL) : number_value(env, (double)values[n]));
  }
  return counts;
}
