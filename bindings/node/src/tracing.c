/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding and tracing, over <usdt/usdtc.h>. index.js makes classes of it. */
#include <stdio.h>
#include <usdt/usdtc.h>
#include <uv.h>

#include "napi_helpers.h"

static const napi_type_tag kTracer = {0x51b7c2c0a7c84f27ULL, 0xa1c9db2bd0a94ad9ULL};

/* ---- errors -------------------------------------------------------------------------------------------------------
 */

static const char* kind_name(uint32_t kind) {
  static const char* const names[] = {
      "",          "invalid_argument", "syntax",  "not_found", "no_permission", "not_supported",
      "malformed", "changed",          "limit",   "io",        "type_mismatch", "stopped",
      "verifier",  "no_memory",        "internal"};
  return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "internal";
}

/* An Error of JavaScript; frees `error`. */
static napi_value error_value(napi_env env, usdtc_error* error, int result) {
  napi_value value = NULL;
  napi_create_error(env, NULL, text_value(env, usdtc_error_message(error)), &value);
  set(env, value, "kind", text_value(env, kind_name(usdtc_error_kind(error))));
  set(env, value, "errno", number_value(env, result));
  if (usdtc_error_column(error) >= 0) set(env, value, "column", number_value(env, (double)usdtc_error_column(error)));
  if (usdtc_error_log(error)[0]) set(env, value, "log", text_value(env, usdtc_error_log(error)));
  usdtc_error_free(error);
  return value;
}

static napi_value throw_error(napi_env env, usdtc_error* error, int result) {
  napi_throw(env, error_value(env, error, result));
  return NULL;
}

/* ---- options, which index.js has made complete ---------------------------------------------------------------------
 */

struct texts {
  char** all;
  uint32_t count;
};

static bool read_texts(napi_env env, napi_value object, const char* name, struct texts* texts) {
  napi_value list = NULL, each = NULL;
  uint32_t count = 0;
  texts->all = NULL;
  texts->count = 0;
  if (napi_get_named_property(env, object, name, &list) != napi_ok ||
      napi_get_array_length(env, list, &count) != napi_ok)
    return false;
  if (count == 0) return true;
  texts->all = calloc(count, sizeof(char*));
  for (uint32_t i = 0; texts->all && i < count; ++i) {
    if (napi_get_element(env, list, i, &each) != napi_ok || !(texts->all[i] = text_of(env, each))) return false;
    texts->count = i + 1;
  }
  return texts->all != NULL;
}

static void free_texts(struct texts* texts) {
  for (uint32_t i = 0; i < texts->count; ++i) free(texts->all[i]);
  free(texts->all);
}

static bool read_pids(napi_env env, napi_value object, const char* name, int32_t** pids, size_t* count) {
  napi_value list = NULL, each = NULL;
  uint32_t length = 0;
  *pids = NULL;
  *count = 0;
  if (napi_get_named_property(env, object, name, &list) != napi_ok ||
      napi_get_array_length(env, list, &length) != napi_ok)
    return false;
  if (length == 0) return true;
  if (!(*pids = calloc(length, sizeof(int32_t)))) return false;
  for (uint32_t i = 0; i < length; ++i)
    if (napi_get_element(env, list, i, &each) != napi_ok || napi_get_value_int32(env, each, &(*pids)[i]) != napi_ok)
      return false;
  *count = length;
  return true;
}

static bool read_number(napi_env env, napi_value object, const char* name, uint32_t* number) {
  napi_value value = NULL;
  return napi_get_named_property(env, object, name, &value) == napi_ok &&
         napi_get_value_uint32(env, value, number) == napi_ok;
}

struct wanted {
  struct texts patterns, targets, text_args, values;
  int32_t *pids, *scope, *family;
  size_t pid_count, scope_count, family_count;
  char* program;
  struct usdtc_plan_options plan;
  struct usdtc_trace_options trace;
};

static bool read_search(napi_env env, napi_value object, struct wanted* wanted) {
  napi_value program = NULL;
  napi_valuetype type = napi_undefined;
  if (!read_texts(env, object, "patterns", &wanted->patterns) ||
      !read_texts(env, object, "targets", &wanted->targets) ||
      !read_pids(env, object, "searched", &wanted->pids, &wanted->pid_count) ||
      napi_get_named_property(env, object, "program", &program) != napi_ok)
    return false;
  napi_typeof(env, program, &type);
  if (type == napi_string) wanted->program = text_of(env, program);
  return true;
}

static bool read_trace(napi_env env, napi_value object, struct wanted* wanted) {
  return read_search(env, object, wanted) && read_texts(env, object, "textArgs", &wanted->text_args) &&
         read_texts(env, object, "values", &wanted->values) &&
         read_pids(env, object, "pids", &wanted->scope, &wanted->scope_count) &&
         read_pids(env, object, "family", &wanted->family, &wanted->family_count) &&
         read_number(env, object, "texts", &wanted->plan.texts) &&
         read_number(env, object, "planFlags", &wanted->plan.flags) &&
         read_number(env, object, "traceFlags", &wanted->trace.flags) &&
         read_number(env, object, "stringSize", &wanted->trace.string_size) &&
         read_number(env, object, "ringBytes", &wanted->trace.ring_bytes);
}

static void free_wanted(struct wanted* wanted) {
  free_texts(&wanted->patterns);
  free_texts(&wanted->targets);
  free_texts(&wanted->text_args);
  free_texts(&wanted->values);
  free(wanted->pids);
  free(wanted->scope);
  free(wanted->family);
  free(wanted->program);
}

static int select_wanted(const struct wanted* wanted, usdtc_selection** selection, usdtc_error** error) {
  const struct usdtc_search search = {.size = sizeof(search),
                                      .patterns = (const char* const*)wanted->patterns.all,
                                      .pattern_count = wanted->patterns.count,
                                      .targets = (const char* const*)wanted->targets.all,
                                      .target_count = wanted->targets.count,
                                      .pids = wanted->pids,
                                      .pid_count = wanted->pid_count,
                                      .program = wanted->program};
  return usdtc_select(&search, selection, error);
}

/* ---- listing -------------------------------------------------------------------------------------------------------
 */

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

/* list(options) -> points */
static napi_value list(napi_env env, napi_callback_info info) {
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

/* ---- tracing -------------------------------------------------------------------------------------------------------
 */

/* What a handle stands for. */
struct tracer {
  napi_env env;
  usdtc_tracer* tracer;  /* NULL: closed */
  uv_poll_t* poll;       /* of its descriptor, closed before that is; libuv has it until then */
  napi_deferred waiting; /* the promise of readable(); NULL: nobody waits */
  napi_async_context context;
  napi_async_cleanup_hook_handle at_end; /* of the environment, a worker's perhaps: the poll handle goes first */
  bool* seen;                            /* by site: whether its names were handed out */
  uint32_t seen_count;
};

static void free_poll(uv_handle_t* handle) { free(handle); }

static void end_tracer(struct tracer* tracer) {
  if (tracer->poll) uv_close((uv_handle_t*)tracer->poll, free_poll);
  tracer->poll = NULL;
  if (tracer->at_end) napi_remove_async_cleanup_hook(tracer->at_end);
  tracer->at_end = NULL;
  usdtc_tracer_free(tracer->tracer);
  tracer->tracer = NULL;
}

static void poll_ended(uv_handle_t* handle) {
  napi_remove_async_cleanup_hook(handle->data);
  free(handle);
}

/* The environment waits for poll_ended(), since its loop may have no handles then. */
static void environment_ends(napi_async_cleanup_hook_handle hook, void* data) {
  struct tracer* tracer = data;
  uv_poll_t* poll = tracer->poll;
  tracer->poll = NULL;
  tracer->at_end = NULL;
  tracer->waiting = NULL;
  tracer->context = NULL; /* goes with the environment */
  poll->data = hook;
  uv_close((uv_handle_t*)poll, poll_ended);
  end_tracer(tracer);
}

static void finalize_tracer(napi_env env, void* data, void* hint) {
  (void)hint;
  struct tracer* tracer = data;
  end_tracer(tracer);
  if (tracer->context) napi_async_destroy(env, tracer->context);
  free(tracer->seen);
  free(tracer);
}

/* start(options) -> promise of a tracer: attaching takes a while, which another thread spends. */
struct start {
  struct wanted wanted;
  napi_deferred deferred;
  napi_async_work work;
  usdtc_tracer* tracer;
  usdtc_error* error;
  int result;
};

static void attach(napi_env env, void* data) {
  (void)env;
  struct start* start = data;
  struct wanted* wanted = &start->wanted;
  usdtc_selection* selection = NULL;
  usdtc_plan* plan = NULL;
  wanted->plan.size = sizeof(wanted->plan);
  wanted->plan.pids = wanted->scope;
  wanted->plan.pid_count = wanted->scope_count;
  wanted->plan.text_args = (const char* const*)wanted->text_args.all;
  wanted->plan.text_arg_count = wanted->text_args.count;
  wanted->plan.values = (const char* const*)wanted->values.all;
  wanted->plan.value_count = wanted->values.count;
  wanted->trace.size = sizeof(wanted->trace);
  wanted->trace.family = wanted->family;
  wanted->trace.family_count = wanted->family_count;
  start->result = select_wanted(wanted, &selection, &start->error);
  if (start->result == 0) start->result = usdtc_plan_make(selection, &wanted->plan, &plan, &start->error);
  if (start->result == 0) start->result = usdtc_tracer_start(plan, &wanted->trace, &start->tracer, &start->error);
  usdtc_plan_free(plan);
  usdtc_selection_free(selection);
}

/* NULL: no memory, or no descriptors. */
static uv_poll_t* poll_of(napi_env env, usdtc_tracer* tracer) {
  int fd = -1;
  uv_loop_t* loop = NULL;
  uv_poll_t* poll = malloc(sizeof(*poll));
  if (poll && usdtc_tracer_fd(tracer, &fd, NULL) == 0 && napi_get_uv_event_loop(env, &loop) == napi_ok &&
      uv_poll_init(loop, poll, fd) == 0)
    return poll;
  free(poll);
  return NULL;
}

static napi_value wrap_tracer(napi_env env, usdtc_tracer* started) {
  struct tracer* tracer = calloc(1, sizeof(*tracer));
  uv_poll_t* poll = tracer ? poll_of(env, started) : NULL;
  if (!poll) {
    usdtc_tracer_free(started);
    free(tracer);
    return NULL;
  }
  poll->data = tracer;
  tracer->env = env;
  tracer->tracer = started;
  tracer->poll = poll;
  napi_value handle = handle_value(env, tracer, &kTracer, finalize_tracer);
  if (!handle) { /* the environment ends */
    end_tracer(tracer);
    free(tracer);
    return NULL;
  }
  napi_async_init(env, handle, text_value(env, "usdt.Tracer"), &tracer->context);
  napi_add_async_cleanup_hook(env, environment_ends, tracer, &tracer->at_end);
  return handle;
}

static void attached(napi_env env, napi_status status, void* data) {
  (void)status;
  struct start* start = data;
  napi_value handle = start->result == 0 ? wrap_tracer(env, start->tracer) : NULL;
  if (handle)
    napi_resolve_deferred(env, start->deferred, handle);
  else
    napi_reject_deferred(env, start->deferred, error_value(env, start->error, start->result));
  napi_delete_async_work(env, start->work);
  free_wanted(&start->wanted);
  free(start);
}

static napi_value start(napi_env env, napi_callback_info info) {
  napi_value options = NULL, promise = NULL;
  size_t count = 1;
  TRY(napi_get_cb_info(env, info, &count, &options, NULL, NULL));
  struct start* start = calloc(1, sizeof(*start));
  if (!start || !read_trace(env, options, &start->wanted)) {
    if (start) free_wanted(&start->wanted);
    free(start);
    return napi_throw_type_error(env, NULL, "usdt.Tracer: bad options"), NULL;
  }
  TRY(napi_create_promise(env, &start->deferred, &promise));
  TRY(napi_create_async_work(env, NULL, text_value(env, "usdt.start"), attach, attached, start, &start->work));
  TRY(napi_queue_async_work(env, start->work));
  return promise;
}

/* The tracer behind the first argument, which has to be open. */
static struct tracer* tracer_of(napi_env env, napi_value value) {
  struct tracer* tracer = handle_of(env, value, &kTracer);
  if (tracer && !tracer->tracer) {
    napi_throw_error(env, NULL, "usdt: the tracer is closed");
    return NULL;
  }
  return tracer;
}

/* Resolves the promise of who waits, in a scope of its own, so that what hangs on it runs. */
static void answer(struct tracer* tracer) {
  if (!tracer->waiting) return;
  napi_env env = tracer->env;
  napi_handle_scope handles = NULL;
  napi_callback_scope callbacks = NULL;
  napi_value resource = NULL;
  napi_deferred waiting = tracer->waiting;
  tracer->waiting = NULL;
  uv_poll_stop(tracer->poll);
  napi_open_handle_scope(env, &handles);
  napi_create_object(env, &resource);
  napi_open_callback_scope(env, resource, tracer->context, &callbacks);
  napi_resolve_deferred(env, waiting, undefined_value(env));
  napi_close_callback_scope(env, callbacks);
  napi_close_handle_scope(env, handles);
}

static void on_readable(uv_poll_t* poll, int status, int events) {
  (void)status, (void)events;
  answer(poll->data);
}

/* readable(tracer) -> promise that is kept when there is something to take, or wake() was called. Keeps the process
 * alive. */
static napi_value readable(napi_env env, napi_callback_info info) {
  napi_value argument = NULL, promise = NULL;
  size_t count = 1;
  TRY(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
  struct tracer* tracer = tracer_of(env, argument);
  if (!tracer) return NULL;
  if (tracer->waiting) return napi_throw_error(env, NULL, "usdt: somebody waits for this tracer already"), NULL;
  TRY(napi_create_promise(env, &tracer->waiting, &promise));
  uv_poll_start(tracer->poll, UV_READABLE, on_readable);
  return promise;
}

static napi_value value_of(napi_env env, const struct usdtc_value* value, const struct usdtc_arg* arg) {
  napi_value out = NULL;
  switch (value->kind) {
    case USDTC_VALUE_SIGNED:
      if (arg->bytes == 8)
        napi_create_bigint_int64(env, value->number.i, &out);
      else
        napi_create_int64(env, value->number.i, &out);
      return out;
    case USDTC_VALUE_UNSIGNED:
      if (arg->kind == USDTC_TYPE_BOOLEAN) return boolean_value(env, value->number.u != 0);
      return arg->bytes == 8 ? u64_value(env, value->number.u) : number_value(env, (double)value->number.u);
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

/* Whether this is the first event of its site, whose names index.js keeps. */
static bool first_of_site(struct tracer* tracer, uint32_t site) {
  if (site >= tracer->seen_count) {
    const uint32_t count = site + 64;
    bool* seen = realloc(tracer->seen, count * sizeof(bool));
    if (!seen) return true;
    memset(seen + tracer->seen_count, 0, (count - tracer->seen_count) * sizeof(bool));
    tracer->seen = seen;
    tracer->seen_count = count;
  }
  const bool first = !tracer->seen[site];
  tracer->seen[site] = true;
  return first;
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
    const napi_value shown = value_of(env, &value, &arg);
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

static napi_value event_value(napi_env env, struct tracer* tracer, const usdtc_event* event) {
  struct usdtc_event_info info = {.size = sizeof(info)};
  napi_value object = NULL, comm = NULL;
  TRY(napi_create_object(env, &object));
  usdtc_event_read(event, &info, NULL);
  napi_create_string_utf8(env, info.comm.data, info.comm.length, &comm);
  set(env, object, "probe", text_value(env, info.full_name));
  set(env, object, "provider", text_value(env, info.provider));
  set(env, object, "name", text_value(env, info.name));
  set(env, object, "time", u64_value(env, info.time));
  set(env, object, "pid", number_value(env, info.pid));
  set(env, object, "tid", number_value(env, info.tid));
  set(env, object, "cpu", number_value(env, info.cpu));
  set(env, object, "comm", comm);
  set(env, object, "site", number_value(env, info.site));
  if (info.duration) set(env, object, "duration", u64_value(env, info.duration));
  add_values(env, event, &info, object, first_of_site(tracer, info.site));
  return object;
}

/* take(tracer, limit) -> events that are there */
static napi_value take(napi_env env, napi_callback_info info) {
  napi_value arguments[2], events = NULL;
  size_t count = 2;
  uint32_t limit = 0;
  TRY(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  struct tracer* tracer = tracer_of(env, arguments[0]);
  if (!tracer) return NULL;
  TRY(napi_get_value_uint32(env, arguments[1], &limit));
  usdtc_batch* batch = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_tracer_take(tracer->tracer, 0, limit, &batch, &error);
  if (result != 0) return throw_error(env, error, result);
  const size_t taken = usdtc_batch_count(batch);
  napi_create_array_with_length(env, taken, &events);
  for (size_t i = 0; i < taken; ++i) {
    napi_handle_scope scope = NULL;
    napi_open_handle_scope(env, &scope);
    const napi_value event = event_value(env, tracer, usdtc_batch_event(batch, i));
    if (event) napi_set_element(env, events, (uint32_t)i, event);
    napi_close_handle_scope(env, scope);
  }
  usdtc_batch_free(batch);
  return events;
}

static napi_value counts_value(napi_env env, const struct usdtc_counts* counts) {
  napi_value value = NULL;
  TRY(napi_create_object(env, &value));
  set(env, value, "hits", number_value(env, (double)counts->hits));
  set(env, value, "delivered", number_value(env, (double)counts->delivered));
  set(env, value, "lost", number_value(env, (double)counts->lost));
  set(env, value, "discarded", number_value(env, (double)counts->discarded));
  set(env, value, "unfinished", number_value(env, (double)counts->unfinished));
  napi_value missed = text_value(env, NULL);
  if (counts->missed != UINT64_MAX) missed = number_value(env, (double)counts->missed);
  set(env, value, "missed", missed);
  return value;
}

/* counts(tracer) */
static napi_value counts(napi_env env, napi_callback_info info) {
  napi_value argument = NULL;
  size_t count = 1;
  TRY(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
  struct tracer* tracer = tracer_of(env, argument);
  if (!tracer) return NULL;
  struct usdtc_counts total = {.size = sizeof(total)};
  usdtc_ledger* ledger = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_tracer_ledger(tracer->tracer, &ledger, &error);
  if (result != 0) return throw_error(env, error, result);
  usdtc_ledger_total(ledger, &total, NULL);
  usdtc_ledger_free(ledger);
  return counts_value(env, &total);
}

/* notices(tracer) -> texts */
static napi_value notices(napi_env env, napi_callback_info info) {
  napi_value argument = NULL, all = NULL;
  size_t count = 1;
  TRY(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
  struct tracer* tracer = tracer_of(env, argument);
  if (!tracer) return NULL;
  TRY(napi_create_array(env, &all));
  struct usdtc_notice notice = {.size = sizeof(notice)};
  for (uint32_t n = 0; usdtc_tracer_notice(tracer->tracer, n, &notice, NULL) == 0; ++n)
    napi_set_element(env, all, n, text_value(env, notice.message));
  return all;
}

/* detach(tracer), wake(tracer) */
static napi_value on_tracer(napi_env env, napi_callback_info info, bool detach) {
  napi_value argument = NULL;
  size_t count = 1;
  TRY(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
  struct tracer* tracer = tracer_of(env, argument);
  if (!tracer) return NULL;
  if (detach)
    usdtc_tracer_detach(tracer->tracer);
  else
    usdtc_tracer_wake(tracer->tracer);
  return undefined_value(env);
}
static napi_value detach(napi_env env, napi_callback_info info) { return on_tracer(env, info, true); }
static napi_value wake(napi_env env, napi_callback_info info) { return on_tracer(env, info, false); }

/* close(tracer) -> its last counts; what nobody took counts as discarded */
static napi_value close_tracer(napi_env env, napi_callback_info info) {
  napi_value argument = NULL;
  size_t count = 1;
  TRY(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
  struct tracer* tracer = tracer_of(env, argument);
  if (!tracer) return NULL;
  usdtc_tracer_discard(tracer->tracer);
  napi_value last = counts(env, info);
  napi_deferred waiting = tracer->waiting;
  tracer->waiting = NULL;
  if (waiting) napi_resolve_deferred(env, waiting, undefined_value(env));
  end_tracer(tracer);
  return last;
}

/* checkPrivilege() */
static napi_value check_privilege(napi_env env, napi_callback_info info) {
  (void)info;
  usdtc_error* error = NULL;
  const int result = usdtc_check_privilege(&error);
  return result == 0 ? undefined_value(env) : throw_error(env, error, result);
}

NAPI_MODULE_INIT() {
  static const struct exported all[] = {{"list", list},          {"start", start},
                                        {"readable", readable},  {"take", take},
                                        {"counts", counts},      {"notices", notices},
                                        {"detach", detach},      {"wake", wake},
                                        {"close", close_tracer}, {"checkPrivilege", check_privilege}};
  return export_all(env, exports, all, sizeof(all) / sizeof(all[0]));
}
