/* SPDX-License-Identifier: BSD-2-Clause */
/* Tracers, and what the addon exports. */
#include "tracing.h"

#include <uv.h>

static const napi_type_tag kTracer = {0x51b7c2c0a7c84f27ULL, 0xa1c9db2bd0a94ad9ULL};

/* What a handle stands for. */
struct tracer {
  napi_env env;
  usdtc_tracer* tracer;  /* NULL: closed */
  uv_poll_t* poll;       /* of its descriptor, closed before that is; libuv has it until then */
  napi_deferred waiting; /* the promise of readable(); NULL: nobody waits */
  napi_async_context context;
  napi_async_cleanup_hook_handle at_end; /* of the environment, a worker's perhaps: the poll handle goes first */
  bool recorded;                         /* into a file, which is finished at the end */
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
  wanted->plan.where = wanted->question.where;
  wanted->plan.table = table_of(&wanted->question);
  wanted->trace.size = sizeof(wanted->trace);
  wanted->trace.family = wanted->family;
  wanted->trace.family_count = wanted->family_count;
  start->result = select_wanted(wanted, &selection, &start->error);
  if (start->result == 0) start->result = usdtc_plan_make(selection, &wanted->plan, &plan, &start->error);
  if (start->result == 0) start->result = usdtc_tracer_start(plan, &wanted->trace, &start->tracer, &start->error);
  if (start->result == 0 && wanted->record)
    start->result = usdtc_tracer_record(start->tracer, wanted->record, &start->error);
  if (start->result != 0) {
    usdtc_tracer_free(start->tracer);
    start->tracer = NULL;
  }
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

static napi_value wrap_tracer(napi_env env, usdtc_tracer* started, bool recorded) {
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
  tracer->recorded = recorded;
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
  napi_value handle = start->result == 0 ? wrap_tracer(env, start->tracer, start->wanted.record != NULL) : NULL;
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

/* The tracer that is a function's only argument. */
static struct tracer* tracer_argument(napi_env env, napi_callback_info info) {
  napi_value argument = NULL;
  size_t count = 1;
  TRY(napi_get_cb_info(env, info, &count, &argument, NULL, NULL));
  return tracer_of(env, argument);
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
  struct tracer* tracer = tracer_argument(env, info);
  if (!tracer) return NULL;
  napi_value promise = NULL;
  if (tracer->waiting) return napi_throw_error(env, NULL, "usdt: somebody waits for this tracer already"), NULL;
  TRY(napi_create_promise(env, &tracer->waiting, &promise));
  uv_poll_start(tracer->poll, UV_READABLE, on_readable);
  return promise;
}

/* Whether this is the first event of its site, whose names index.js keeps. */
static bool first_of_site(void* user, uint32_t site) {
  struct tracer* tracer = user;
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

/* take(tracer, limit) -> events that are there */
static napi_value take(napi_env env, napi_callback_info info) {
  napi_value arguments[2];
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
  return events_value(env, batch, first_of_site, tracer);
}

/* rows(tracer) -> those of its table */
static napi_value rows(napi_env env, napi_callback_info info) {
  struct tracer* tracer = tracer_argument(env, info);
  if (!tracer) return NULL;
  usdtc_rows* all = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_tracer_rows(tracer->tracer, &all, &error);
  return result == 0 ? rows_value(env, all) : throw_error(env, error, result);
}

/* counts(tracer) */
static napi_value counts(napi_env env, napi_callback_info info) {
  struct tracer* tracer = tracer_argument(env, info);
  if (!tracer) return NULL;
  usdtc_ledger* ledger = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_tracer_ledger(tracer->tracer, &ledger, &error);
  return result == 0 ? counts_value(env, ledger) : throw_error(env, error, result);
}

/* overhead(tracer), of one that has a limit */
static napi_value overhead(napi_env env, napi_callback_info info) {
  struct tracer* tracer = tracer_argument(env, info);
  if (!tracer) return NULL;
  usdtc_ledger* ledger = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_tracer_ledger(tracer->tracer, &ledger, &error);
  return result == 0 ? overhead_value(env, ledger) : throw_error(env, error, result);
}

/* notices(tracer) -> texts */
static napi_value notices(napi_env env, napi_callback_info info) {
  struct tracer* tracer = tracer_argument(env, info);
  if (!tracer) return NULL;
  napi_value all = NULL;
  TRY(napi_create_array(env, &all));
  struct usdtc_notice notice = {.size = sizeof(notice)};
  for (uint32_t n = 0; usdtc_tracer_notice(tracer->tracer, n, &notice, NULL) == 0; ++n)
    napi_set_element(env, all, n, text_value(env, notice.message));
  return all;
}

/* detach(tracer), discard(tracer), wake(tracer) */
static napi_value detach(napi_env env, napi_callback_info info) {
  struct tracer* tracer = tracer_argument(env, info);
  if (!tracer) return NULL;
  usdtc_tracer_detach(tracer->tracer);
  return undefined_value(env);
}

static napi_value discard(napi_env env, napi_callback_info info) {
  struct tracer* tracer = tracer_argument(env, info);
  if (!tracer) return NULL;
  usdtc_tracer_discard(tracer->tracer);
  return undefined_value(env);
}

static napi_value wake(napi_env env, napi_callback_info info) {
  struct tracer* tracer = tracer_argument(env, info);
  if (!tracer) return NULL;
  usdtc_tracer_wake(tracer->tracer);
  return undefined_value(env);
}

/* close(tracer). Throws what went wrong with its recording. */
static napi_value close_tracer(napi_env env, napi_callback_info info) {
  struct tracer* tracer = tracer_argument(env, info);
  if (!tracer) return NULL;
  napi_deferred waiting = tracer->waiting;
  tracer->waiting = NULL;
  if (waiting) napi_resolve_deferred(env, waiting, undefined_value(env));
  usdtc_error* error = NULL;
  const int result = tracer->recorded ? usdtc_tracer_record_end(tracer->tracer, &error) : 0;
  end_tracer(tracer);
  return result == 0 ? undefined_value(env) : throw_error(env, error, result);
}

/* checkPrivilege() */
static napi_value check_privilege(napi_env env, napi_callback_info info) {
  (void)info;
  usdtc_error* error = NULL;
  const int result = usdtc_check_privilege(&error);
  return result == 0 ? undefined_value(env) : throw_error(env, error, result);
}

NAPI_MODULE_INIT() {
  static const struct exported all[] = {{"list", list},
                                        {"start", start},
                                        {"readable", readable},
                                        {"take", take},
                                        {"counts", counts},
                                        {"notices", notices},
                                        {"overhead", overhead},
                                        {"detach", detach},
                                        {"wake", wake},
                                        {"discard", discard},
                                        {"close", close_tracer},
                                        {"checkPrivilege", check_privilege},
                                        {"rows", rows},
                                        {"ask", ask},
                                        {"askBegin", ask_begin},
                                        {"askStep", ask_step},
                                        {"askFinish", ask_finish},
                                        {"askStop", ask_stop},
                                        {"askNotices", ask_notices},
                                        {"askClose", ask_close},
                                        {"askOptions", ask_options},
                                        {"openRecording", open_recording},
                                        {"recordingTake", recording_take},
                                        {"recordingRows", recording_rows},
                                        {"recordingCounts", recording_counts},
                                        {"recordingInfo", recording_info},
                                        {"recordingClose", recording_close}};
  return export_all(env, exports, all, sizeof(all) / sizeof(all[0]));
}
