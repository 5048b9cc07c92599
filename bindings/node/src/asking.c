/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions and their answers. What takes long is done by threads of libuv, one call at a time. */
#include "tracing.h"

static const napi_type_tag kAsking = {0x6f1d0ac5b1a94c9eULL, 0x93b7e05b28c14d60ULL};

/* What a handle stands for. */
struct asking {
  usdtc_session* session; /* NULL: it has ended */
  uint64_t given;         /* bytes of its text that were handed on: lines of JSON */
  bool busy;              /* a thread uses it */
  bool orphan;            /* nobody will ask for its answers any more: it is freed when it is not busy */
};

static void free_asking(struct asking* asking) {
  usdtc_session_free(asking->session);
  free(asking);
}

static void finalize_asking(napi_env env, void* data, void* hint) {
  (void)env, (void)hint;
  struct asking* asking = data;
  if (!asking->busy) {
    free_asking(asking);
    return;
  }
  asking->orphan = true;
  usdtc_session_stop(asking->session);
}

/* Element `n` of an array, as text to be freed; NULL: it is none, or null (`*none`). */
static char* element_text(napi_env env, napi_value array, uint32_t n, bool* none) {
  napi_value element = NULL;
  napi_valuetype type = napi_undefined;
  *none = false;
  if (napi_get_element(env, array, n, &element) != napi_ok || napi_typeof(env, element, &type) != napi_ok) return NULL;
  *none = type == napi_null;
  return *none ? NULL : text_of(env, element);
}

/* Calls `take` with each pair of an array of pairs of texts, of which the second may be null. False: it was none, or
 * `take` failed. */
static bool each_pair(napi_env env, napi_value array, bool (*take)(void* user, const char* first, const char* second),
                      void* user) {
  uint32_t count = 0;
  if (napi_get_array_length(env, array, &count) != napi_ok) return false;
  for (uint32_t n = 0; n < count; ++n) {
    napi_value pair = NULL;
    bool none = false;
    if (napi_get_element(env, array, n, &pair) != napi_ok) return false;
    char* first = element_text(env, pair, 0, &none);
    char* second = element_text(env, pair, 1, &none);
    const bool taken = first && (second || none) && take(user, first, second);
    free(first);
    free(second);
    if (!taken) return false;
  }
  return true;
}

/* A question that is being put together, and where its answers go. */
struct asked {
  usdtc_question* question;
  struct usdtc_sink** sinks; /* `count` of them, each with texts of its own */
  size_t count;
  usdtc_error* error; /* of the first call that failed */
  int result;
};

static bool add_point(void* user, const char* point, const char* none) {
  struct asked* asked = user;
  (void)none;
  asked->result = usdtc_question_add(asked->question, point, &asked->error);
  return asked->result == 0;
}

static bool set_option(void* user, const char* name, const char* value) {
  struct asked* asked = user;
  asked->result = usdtc_question_set(asked->question, name, value, &asked->error);
  return asked->result == 0;
}

static struct usdtc_sink* add_sink(struct asked* asked) {
  struct usdtc_sink** grown = realloc(asked->sinks, (asked->count + 1) * sizeof(*grown));
  if (!grown) return NULL;
  asked->sinks = grown;
  struct usdtc_sink* sink = calloc(1, sizeof(*sink));
  if (!sink) return NULL;
  sink->size = sizeof(*sink);
  asked->sinks[asked->count++] = sink;
  return sink;
}

static bool add_file(void* user, const char* format, const char* file) {
  struct usdtc_sink* sink = file ? add_sink(user) : NULL;
  if (!sink) return false;
  sink->format = strdup(format);
  sink->file = strdup(file);
  return sink->format && sink->file;
}

static bool add_listener(void* user, const char* place, const char* none) {
  struct usdtc_sink* sink = add_sink(user);
  (void)none;
  if (!sink) return false;
  sink->listen = strdup(place);
  return sink->listen;
}

static void free_asked(struct asked* asked) {
  for (size_t n = 0; n < asked->count; ++n) {
    free((char*)asked->sinks[n]->format);
    free((char*)asked->sinks[n]->file);
    free((char*)asked->sinks[n]->listen);
    free(asked->sinks[n]);
  }
  free(asked->sinks);
  usdtc_question_free(asked->question);
}

/* ask(points, options, files, listeners) -> handle: arrays of pairs, [point, null], [option, value or null], [format,
 * file], [place, null] */
napi_value ask(napi_env env, napi_callback_info info) {
  napi_value arguments[4];
  size_t count = 4;
  TRY(napi_get_cb_info(env, info, &count, arguments, NULL, NULL));
  struct asked asked = {.question = usdtc_question_new()};
  struct asking* asking = calloc(1, sizeof(*asking));
  struct usdtc_sink* own = add_sink(&asked);
  if (asking) asking->session = usdtc_session_new();
  bool made = asked.question && asking && asking->session && own;
  if (made) own->flags = USDTC_SINK_KEEP;
  made = made && each_pair(env, arguments[0], add_point, &asked) && each_pair(env, arguments[1], set_option, &asked) &&
         each_pair(env, arguments[2], add_file, &asked) && each_pair(env, arguments[3], add_listener, &asked);
  if (made) {
    asked.result = usdtc_session_ask(asking->session, asked.question, NULL,
                                     (const struct usdtc_sink* const*)asked.sinks, asked.count, &asked.error);
    made = asked.result == 0;
  }
  free_asked(&asked);
  napi_value handle = made ? handle_value(env, asking, &kAsking, finalize_asking) : NULL;
  if (handle) return handle;
  if (asking) free_asking(asking);
  if (asked.result != 0) return throw_error(env, asked.error, asked.result);
  return napi_throw_type_error(env, NULL, "usdt.ask: bad options"), NULL;
}

/* One call of the library that a thread makes. */
enum asking_step { ASKING_BEGIN, ASKING_STEP, ASKING_FINISH };
struct asking_work {
  enum asking_step step;
  struct asking* asking;
  napi_ref handle; /* keeps it */
  napi_deferred deferred;
  napi_async_work work;
  usdtc_error* error;
  int result, more;
};

static void do_work(napi_env env, void* data) {
  (void)env;
  struct asking_work* work = data;
  usdtc_session* session = work->asking->session;
  if (work->step == ASKING_BEGIN) work->result = usdtc_session_begin(session, &work->error);
  if (work->step == ASKING_STEP) work->result = usdtc_session_step(session, 50, &work->more, &work->error);
  if (work->step == ASKING_FINISH) work->result = usdtc_session_finish(session, &work->error);
}

/* {more, text}: what came, and whether there will be more. */
static napi_value answers_value(napi_env env, struct asking_work* work) {
  struct asking* asking = work->asking;
  napi_value value = NULL, text = NULL;
  struct usdtc_text come = {.data = "", .length = 0};
  usdtc_session_text(asking->session, asking->given, &come, NULL);
  TRY(napi_create_object(env, &value));
  TRY(napi_create_string_utf8(env, come.data, come.length, &text));
  asking->given += come.length;
  set(env, value, "text", text);
  set(env, value, "more", boolean_value(env, work->more != 0));
  return value;
}

static void work_done(napi_env env, napi_status status, void* data) {
  (void)status;
  struct asking_work* work = data;
  struct asking* asking = work->asking;
  asking->busy = false;
  if (asking->orphan) {
    usdtc_error_free(work->error);
    free_asking(asking);
  } else if (work->result == 0) {
    napi_resolve_deferred(env, work->deferred, answers_value(env, work));
  } else {
    napi_reject_deferred(env, work->deferred, error_value(env, work->error, work->result));
  }
  napi_delete_reference(env, work->handle);
  napi_delete_async_work(env, work->work);
  free(work);
}

/* The session behind the first argument, which has to be open. */
static struct asking* asking_of(napi_env env, napi_callback_info info, napi_value* handle) {
  size_t count = 1;
  TRY(napi_get_cb_info(env, info, &count, handle, NULL, NULL));
  struct asking* asking = handle_of(env, *handle, &kAsking);
  if (asking && !asking->session) {
    napi_throw_error(env, NULL, "usdt: the question has been answered");
    return NULL;
  }
  return asking;
}

static napi_value start_work(napi_env env, napi_callback_info info, enum asking_step step) {
  napi_value handle = NULL, promise = NULL;
  struct asking* asking = asking_of(env, info, &handle);
  if (!asking) return NULL;
  if (asking->busy) return napi_throw_error(env, NULL, "usdt: somebody waits for these answers already"), NULL;
  struct asking_work* work = calloc(1, sizeof(*work));
  if (!work) return napi_throw_error(env, NULL, "usdt: no memory"), NULL;
  work->step = step;
  work->asking = asking;
  TRY(napi_create_reference(env, handle, 1, &work->handle));
  TRY(napi_create_promise(env, &work->deferred, &promise));
  TRY(napi_create_async_work(env, NULL, text_value(env, "usdt.ask"), do_work, work_done, work, &work->work));
  asking->busy = true;
  TRY(napi_queue_async_work(env, work->work));
  return promise;
}

napi_value ask_begin(napi_env env, napi_callback_info info) { return start_work(env, info, ASKING_BEGIN); }
napi_value ask_step(napi_env env, napi_callback_info info) { return start_work(env, info, ASKING_STEP); }
napi_value ask_finish(napi_env env, napi_callback_info info) { return start_work(env, info, ASKING_FINISH); }

napi_value ask_stop(napi_env env, napi_callback_info info) {
  napi_value handle = NULL;
  struct asking* asking = asking_of(env, info, &handle);
  if (!asking) return NULL;
  usdtc_session_stop(asking->session);
  return undefined_value(env);
}

napi_value ask_notices(napi_env env, napi_callback_info info) {
  napi_value handle = NULL, all = NULL;
  struct asking* asking = asking_of(env, info, &handle);
  if (!asking) return NULL;
  if (asking->busy) return napi_throw_error(env, NULL, "usdt: somebody waits for these answers"), NULL;
  TRY(napi_create_array(env, &all));
  struct usdtc_notice notice = {.size = sizeof(notice)};
  for (uint32_t n = 0; usdtc_session_notice(asking->session, n, &notice, NULL) == 0; ++n)
    napi_set_element(env, all, n, text_value(env, notice.message));
  return all;
}

napi_value ask_close(napi_env env, napi_callback_info info) {
  napi_value handle = NULL;
  struct asking* asking = asking_of(env, info, &handle);
  if (!asking) return NULL;
  if (asking->busy) return napi_throw_error(env, NULL, "usdt: somebody waits for these answers"), NULL;
  usdtc_session_free(asking->session);
  asking->session = NULL;
  return undefined_value(env);
}

/* options() -> {name: description} of all that a question may be asked with */
napi_value ask_options(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value all = NULL;
  TRY(napi_create_object(env, &all));
  struct usdtc_option option = {.size = sizeof(option)};
  for (size_t n = 0; usdtc_option_describe(n, &option, NULL) == 0; ++n)
    set(env, all, option.name, text_value(env, option.description));
  return all;
}
