/* SPDX-License-Identifier: BSD-2-Clause */
/* <usdt/usdtc.h> from C11: this program has probes, traces itself, and compares what arrives with what it passed.
 *     c_test CASE...     runs them; 0: all right, 1: not, 77: skipped */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <usdt/probe.h>
#include <usdt/usdtc.h>

static int failures;

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                             \
    }                                                                         \
  } while (0)

static bool same_text(const char* text, const char* expected) {
  const bool same = text && strcmp(text, expected) == 0;
  if (!same) fprintf(stderr, "got '%s', expected '%s'\n", text ? text : "(NULL)", expected);
  return same;
}

static bool is_text(struct usdtc_text text, const char* expected) {
  const bool same = text.length == strlen(expected) && memcmp(text.data, expected, text.length) == 0;
  if (!same) fprintf(stderr, "got '%.*s', expected '%s'\n", (int)text.length, text.data, expected);
  return same;
}

/* The call worked; else says why not. */
static bool worked(int result, usdtc_error* error) {
  if (result != 0) fprintf(stderr, "%d: %s\n%s", result, usdtc_error_message(error), usdtc_error_log(error));
  const bool right = result == 0 && !error;
  usdtc_error_free(error);
  return right;
}

/* The call failed with this errno and kind, and a message that has `words`. */
static bool failed(int result, usdtc_error* error, int number, uint32_t kind, const char* words) {
  const bool right = result == -number && usdtc_error_kind(error) == kind && strstr(usdtc_error_message(error), words);
  if (!right)
    fprintf(stderr, "got %d, kind %u: '%s'; expected %d, kind %u: '%s'\n", result, usdtc_error_kind(error),
            usdtc_error_message(error), -number, kind, words);
  usdtc_error_free(error);
  return right;
}

/* ---- what this program passes to its probes --------------------------------------------------------------------- */

USDT_PROBE_DECLARE(usdtc_test, values, "small, large, exact, half, word:string, wrong:string");

static const char* const kWords[] = {"zero", "one", "na\xc3\xafve", "\xff\xfe", "a text that is longer than sixteen"};
enum { WORDS = 5 };

__attribute__((noinline)) static void fire(int64_t n) {
  const int16_t small = (int16_t)(-n);
  const uint64_t large = UINT64_MAX - (uint64_t)n;
  const double exact = 0.25 * (double)n;
  const float half = 1.5F;
  const char* word = kWords[n % WORDS];
  const char* wrong = (const char*)8; /* nothing is there */
  USDT_PROBE(usdtc_test, values, small, large, exact, half, word, wrong);
}

__attribute__((noinline)) static void count(uint32_t n) { USDT_PROBE(usdtc_test, numbers, n); }

/* ---- shorthands -------------------------------------------------------------------------------------------------- */

static const char* const kSelf = "/proc/self/exe";

static usdtc_selection* select_own(const char* pattern) {
  struct usdtc_search search = {.size = sizeof(search),
                                .patterns = &pattern,
                                .pattern_count = pattern ? 1 : 0,
                                .targets = &kSelf,
                                .target_count = 1};
  usdtc_selection* selection = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_select(&search, &selection, &error);
  CHECK(worked(result, error));
  return selection;
}

static usdtc_plan* plan_options(const char* pattern, struct usdtc_plan_options options) {
  usdtc_selection* selection = select_own(pattern);
  const int32_t self = getpid();
  options.size = sizeof(options);
  options.pids = &self;
  options.pid_count = 1;
  options.user_cookie = 7;
  usdtc_plan* plan = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_plan_make(selection, &options, &plan, &error);
  CHECK(worked(result, error));
  usdtc_selection_free(selection);
  return plan;
}

static usdtc_plan* plan_own(const char* pattern, uint32_t texts) {
  return plan_options(pattern, (struct usdtc_plan_options){.texts = texts});
}

/* Frees the plan. */
static usdtc_tracer* trace_plan(usdtc_plan* plan, struct usdtc_trace_options options) {
  usdtc_tracer* tracer = NULL;
  usdtc_error* error = NULL;
  options.size = sizeof(options);
  const int result = usdtc_tracer_start(plan, &options, &tracer, &error);
  CHECK(worked(result, error));
  usdtc_plan_free(plan);
  if (!tracer) exit(1);
  return tracer;
}

static usdtc_tracer* trace_own(const char* pattern, uint32_t texts, struct usdtc_trace_options options) {
  return trace_plan(plan_own(pattern, texts), options);
}

static usdtc_batch* take(usdtc_tracer* tracer, int timeout_ms, size_t limit) {
  usdtc_batch* batch = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_tracer_take(tracer, timeout_ms, limit, &batch, &error);
  CHECK(worked(result, error));
  return batch;
}

static struct usdtc_event_info info_of(const usdtc_event* event) {
  struct usdtc_event_info info = {.size = sizeof(info)};
  CHECK(usdtc_event_read(event, &info, NULL) == 0);
  return info;
}

static struct usdtc_value value_of(const usdtc_event* event, size_t n) {
  struct usdtc_value value = {.size = sizeof(value)};
  CHECK(usdtc_event_value(event, n, &value, NULL) == 0);
  return value;
}

static struct usdtc_counts total_of(const usdtc_tracer* tracer) {
  struct usdtc_counts counts = {.size = sizeof(counts)};
  usdtc_ledger* ledger = NULL;
  CHECK(usdtc_tracer_ledger(tracer, &ledger, NULL) == 0);
  CHECK(usdtc_ledger_total(ledger, &counts, NULL) == 0);
  usdtc_ledger_free(ledger);
  return counts;
}

/* ---- the structs as other languages know them: they only ever grow at the end -------------------------------------
 */

#if UINTPTR_MAX == UINT64_MAX
#define AT(type, member, offset) _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
_Static_assert(sizeof(struct usdtc_search) == 72, "usdtc_search");
AT(usdtc_search, stop, 64);
_Static_assert(sizeof(struct usdtc_point) == 120, "usdtc_point");
AT(usdtc_point, full_name, 16);
AT(usdtc_point, pc, 56);
AT(usdtc_point, source_line, 104);
AT(usdtc_point, refused, 112);
_Static_assert(sizeof(struct usdtc_arg) == 72, "usdtc_arg");
AT(usdtc_arg, part_of, 20);
AT(usdtc_arg, refused, 64);
_Static_assert(sizeof(struct usdtc_notice) == 24, "usdtc_notice");
AT(usdtc_notice, message, 16);
_Static_assert(sizeof(struct usdtc_table) == 72, "usdtc_table");
AT(usdtc_table, flags, 32);
AT(usdtc_table, step, 64);
_Static_assert(sizeof(struct usdtc_row) == 72, "usdtc_row");
AT(usdtc_row, maximum, 48);
_Static_assert(sizeof(struct usdtc_range) == 48, "usdtc_range");
_Static_assert(sizeof(struct usdtc_replay_options) == 24, "usdtc_replay_options");
_Static_assert(sizeof(struct usdtc_recording_info) == 40, "usdtc_recording_info");
_Static_assert(sizeof(struct usdtc_plan_options) == 96, "usdtc_plan_options");
AT(usdtc_plan_options, user_cookie, 24);
AT(usdtc_plan_options, text_args, 40);
AT(usdtc_plan_options, stop, 72);
AT(usdtc_plan_options, table, 88);
_Static_assert(sizeof(struct usdtc_trace_options) == 40, "usdtc_trace_options");
AT(usdtc_trace_options, family, 24);
_Static_assert(sizeof(struct usdtc_counts) == 104, "usdtc_counts");
AT(usdtc_counts, undecided, 72);
AT(usdtc_counts, table_full, 96);
_Static_assert(sizeof(struct usdtc_event_info) == 128, "usdtc_event_info");
AT(usdtc_event_info, time, 24);
AT(usdtc_event_info, address, 56);
AT(usdtc_event_info, comm, 72);
AT(usdtc_event_info, name, 112);
AT(usdtc_event_info, wall_time, 120);
_Static_assert(sizeof(struct usdtc_value) == 56, "usdtc_value");
AT(usdtc_value, number, 16);
AT(usdtc_value, enumerator, 40);
#endif

/* ---- cases --------------------------------------------------------------------------------------------------------
 */

static void lists_its_own_probes_with_types(void) {
  usdtc_selection* selection = select_own(NULL);
  bool seen = false;
  for (size_t n = 0; n < usdtc_selection_count(selection); ++n) {
    struct usdtc_point point = {.size = sizeof(point)};
    CHECK(usdtc_selection_point(selection, n, &point, NULL) == 0);
    if (strcmp(point.name, "values") != 0) continue;
    seen = true;
    CHECK(point.kind == USDTC_POINT_PROBE && point.arg_count == 6 && !point.refused && point.offset != UINT64_MAX);
    CHECK(same_text(point.provider, "usdtc_test"));
    CHECK(strstr(point.full_name, ":usdtc_test:values") && point.args_text && point.machine && point.file);
    CHECK(strstr(point.source_file, "c_test.c") && point.source_line > 60);
    const char* names[] = {"small", "large", "exact", "half", "word", "wrong"};
    const uint32_t kinds[] = {USDTC_TYPE_INTEGER, USDTC_TYPE_INTEGER, USDTC_TYPE_FLOAT,
                              USDTC_TYPE_FLOAT,   USDTC_TYPE_TEXT,    USDTC_TYPE_TEXT};
    const uint32_t bytes[] = {2, 8, 8, 4, sizeof(char*), sizeof(char*)};
    for (size_t i = 0; i < 6; ++i) {
      struct usdtc_arg arg = {.size = sizeof(arg)};
      CHECK(usdtc_selection_arg(selection, n, i, &arg, NULL) == 0);
      CHECK(same_text(arg.name, names[i]) && arg.kind == kinds[i] && arg.bytes == bytes[i]);
      CHECK(((arg.flags & USDTC_ARG_SIGNED) != 0) == (i == 0));
      CHECK(!arg.refused && arg.part_of == -1);
    }
  }
  CHECK(seen);
  usdtc_selection_free(selection);
}

static int search_for(const char* pattern, const char* target, usdtc_error** error) {
  struct usdtc_search search = {.size = sizeof(search),
                                .patterns = &pattern,
                                .pattern_count = pattern ? 1 : 0,
                                .targets = &target,
                                .target_count = target ? 1 : 0};
  usdtc_selection* selection = NULL;
  const int result = usdtc_select(&search, &selection, error);
  CHECK((result == 0) == (selection != NULL));
  usdtc_selection_free(selection);
  return result;
}

static void says_what_is_wrong_with_a_search(void) {
  usdtc_error* error = NULL;
  int result = search_for("nothing", kSelf, &error);
  CHECK(usdtc_error_column(error) >= 0);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_SYNTAX, "no ':'"));
  result = search_for("usdtc_test:no_such", kSelf, &error);
  CHECK(failed(result, error, ENOENT, USDTC_ERROR_NOT_FOUND, "usdtc_test"));
  result = search_for(NULL, "/no/such/file", &error);
  CHECK(failed(result, error, ENOENT, USDTC_ERROR_NOT_FOUND, "/no/such/file"));
  CHECK(search_for("nothing", kSelf, NULL) == -EINVAL); /* nobody wants the message */
}

static void finds_nothing_in_a_file_without_probes(void) {
  usdtc_error* error = NULL;
  const int result = search_for(NULL, "/bin/true", &error);
  CHECK(worked(result, error));
}

static void refuses_structs_of_sizes_that_cannot_be(void) {
  usdtc_error* error = NULL;
  usdtc_selection* selection = NULL;
  struct usdtc_search search = {.size = 0, .targets = &kSelf, .target_count = 1};
  int result = usdtc_select(&search, &selection, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "the size in struct usdtc_search is 0"));
  search.size = sizeof(search) - 8;
  result = usdtc_select(&search, &selection, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "sizeof(struct usdtc_search)"));

  /* A caller of a later version: what it leaves at 0 does not matter, what it asks for does. */
  struct {
    struct usdtc_search known;
    uint64_t later;
  } newer = {.known = {.size = sizeof(newer), .targets = &kSelf, .target_count = 1}, .later = 0};
  result = usdtc_select(&newer.known, &selection, &error);
  CHECK(worked(result, error));
  struct {
    struct usdtc_point known;
    uint64_t later;
  } filled = {.known = {.size = sizeof(filled)}, .later = 1};
  CHECK(usdtc_selection_point(selection, 0, &filled.known, NULL) == 0);
  CHECK(filled.later == 0 && filled.known.size == sizeof(filled) && filled.known.name);
  filled.known.size = 8;
  result = usdtc_selection_point(selection, 0, &filled.known, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "usdtc_point"));
  usdtc_selection_free(selection);
  newer.later = 1;
  result = usdtc_select(&newer.known, &selection, &error);
  CHECK(failed(result, error, EOPNOTSUPP, USDTC_ERROR_NOT_SUPPORTED, "does not know"));
}

static void takes_null_for_what_it_is(void) {
  usdtc_error* error = NULL;
  int result = usdtc_select(NULL, NULL, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "no place"));
  CHECK(usdtc_plan_make(NULL, NULL, NULL, NULL) == -EINVAL);
  CHECK(usdtc_tracer_start(NULL, NULL, NULL, NULL) == -EINVAL);
  CHECK(usdtc_tracer_take(NULL, 0, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_tracer_poll(NULL, NULL, NULL, 0, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_tracer_fd(NULL, NULL, NULL) == -EINVAL);
  CHECK(usdtc_tracer_ledger(NULL, NULL, NULL) == -EINVAL);
  CHECK(usdtc_tracer_notice(NULL, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_event_read(NULL, NULL, NULL) == -EINVAL);
  CHECK(usdtc_event_copy(NULL, NULL, NULL) == -EINVAL);
  CHECK(usdtc_selection_count(NULL) == 0 && usdtc_batch_count(NULL) == 0 && usdtc_plan_site_count(NULL) == 0);
  CHECK(!usdtc_batch_event(NULL, 0) && !usdtc_plan_probe_name(NULL, 0) && !usdtc_tracer_attachment(NULL));
  CHECK(usdtc_error_kind(NULL) == 0 && same_text(usdtc_error_message(NULL), ""));
  CHECK(usdtc_tracer_rows(NULL, NULL, NULL) == -EINVAL && usdtc_rows_row(NULL, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_rows_key(NULL, 0, 0, NULL, NULL) == -EINVAL && usdtc_rows_range(NULL, 0, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_tracer_record(NULL, NULL, NULL) == -EINVAL && usdtc_tracer_record_end(NULL, NULL) == -EINVAL);
  CHECK(usdtc_recording_open(NULL, NULL, NULL, NULL) == -EINVAL);
  CHECK(usdtc_recording_read(NULL, NULL, NULL) == -EINVAL && usdtc_recording_take(NULL, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_recording_poll(NULL, NULL, NULL, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_recording_rows(NULL, NULL, NULL) == -EINVAL && usdtc_recording_ledger(NULL, NULL, NULL) == -EINVAL);
  CHECK(usdtc_rows_count(NULL) == 0 && !usdtc_rows_key_name(NULL, 0) && !usdtc_recording_plan(NULL));
  usdtc_rows_free(NULL);
  usdtc_recording_free(NULL);
  usdtc_tracer_wake(NULL);
  usdtc_tracer_detach(NULL);
  usdtc_tracer_discard(NULL);
  usdtc_stop_request(NULL);
  usdtc_error_free(NULL);
  usdtc_stop_free(NULL);
  usdtc_selection_free(NULL);
  usdtc_plan_free(NULL);
  usdtc_tracer_free(NULL);
  usdtc_batch_free(NULL);
  usdtc_event_free(NULL);
  usdtc_ledger_free(NULL);
  const char* texts[] = {NULL};
  struct usdtc_search search = {.size = sizeof(search), .patterns = texts, .pattern_count = 1};
  usdtc_selection* selection = NULL;
  result = usdtc_select(&search, &selection, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "patterns[0] is NULL"));
  search.patterns = NULL;
  result = usdtc_select(&search, &selection, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "patterns is NULL"));
}

static void ends_early_when_asked_to(void) {
  usdtc_stop* stop = usdtc_stop_new();
  usdtc_stop_request(stop);
  const char* everything = "*";
  struct usdtc_search search = {.size = sizeof(search), .targets = &everything, .target_count = 1, .stop = stop};
  usdtc_selection* selection = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_select(&search, &selection, &error);
  CHECK(failed(result, error, ECANCELED, USDTC_ERROR_STOPPED, "not looked for"));
  usdtc_stop_free(stop);
}

static int plan_with(struct usdtc_plan_options options, usdtc_error** error) {
  usdtc_selection* selection = select_own("usdtc_test:values");
  options.size = sizeof(options);
  usdtc_plan* plan = NULL;
  const int result = usdtc_plan_make(selection, &options, &plan, error);
  if (result == 0) CHECK(usdtc_plan_probe_count(plan) == 1 && usdtc_plan_site_count(plan) == 1);
  usdtc_plan_free(plan);
  usdtc_selection_free(selection);
  return result;
}

static void plans_what_the_options_say(void) {
  usdtc_error* error = NULL;
  const char* text = "arg4";
  int result = plan_with((struct usdtc_plan_options){.text_args = &text, .text_arg_count = 1}, &error);
  CHECK(worked(result, error));
  text = "no_such";
  result = plan_with((struct usdtc_plan_options){.text_args = &text, .text_arg_count = 1}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "no_such"));
  text = "word,";
  result = plan_with((struct usdtc_plan_options){.text_args = &text, .text_arg_count = 1}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_SYNTAX, "no argument"));
  result = plan_with((struct usdtc_plan_options){.texts = 64}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "mean nothing"));
  const int32_t everybody = 0;
  result = plan_with((struct usdtc_plan_options){.pids = &everybody, .pid_count = 1}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "0"));
}

static int plan_table(struct usdtc_table table, usdtc_error** error) {
  table.size = sizeof(table);
  return plan_with((struct usdtc_plan_options){.table = &table}, error);
}

static void says_what_is_wrong_with_a_question(void) {
  usdtc_error* error = NULL;
  int result = plan_with((struct usdtc_plan_options){.where = "small >"}, &error);
  CHECK(usdtc_error_column(error) >= 7);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_SYNTAX, "where"));
  result = plan_with((struct usdtc_plan_options){.where = "no_such == 1"}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "no_such"));
  result = plan_table((struct usdtc_table){.by = NULL}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "a table of nothing"));
  result = plan_table((struct usdtc_table){.by = "pid, ,"}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_SYNTAX, "by"));
  result = plan_table((struct usdtc_table){.by = "pid", .flags = USDTC_TABLE_EXTREMES}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "extremes of no value"));
  result = plan_table((struct usdtc_table){.by = "pid", .flags = 8}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "mean nothing"));
  result = plan_table((struct usdtc_table){.histogram = "small", .histogram_detail = 5}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "more than 4"));
  result = plan_table((struct usdtc_table){.histogram = "small", .from = 10, .to = 0, .step = 1}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "histogram"));
  result = plan_table((struct usdtc_table){.value = "exact"}, &error); /* a real */
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, ""));
}

static void takes_structs_of_the_first_version(void) {
  usdtc_error* error = NULL;
  usdtc_selection* selection = select_own("usdtc_test:values");
  struct usdtc_plan_options options = {.size = offsetof(struct usdtc_plan_options, where),
                                       .where = "what an older program has behind its struct"};
  usdtc_plan* plan = NULL;
  const int result = usdtc_plan_make(selection, &options, &plan, &error);
  CHECK(worked(result, error));
  usdtc_plan_free(plan);
  usdtc_selection_free(selection);
}

static void says_what_is_no_recording(void) {
  usdtc_error* error = NULL;
  usdtc_recording* recording = NULL;
  int result = usdtc_recording_open("/no/such/file", NULL, &recording, &error);
  CHECK(!recording && failed(result, error, ENOENT, USDTC_ERROR_NOT_FOUND, "/no/such/file"));
  result = usdtc_recording_open(kSelf, NULL, &recording, &error);
  CHECK(!recording && failed(result, error, EBADMSG, USDTC_ERROR_MALFORMED, ""));
}

/* ---- live ---------------------------------------------------------------------------------------------------------
 */

static void check_values(const usdtc_event* event, int64_t n) {
  const struct usdtc_event_info info = info_of(event);
  CHECK(info.kind == USDTC_EVENT_HIT && info.pid == (uint32_t)getpid() && info.tid == (uint32_t)gettid());
  CHECK(same_text(info.provider, "usdtc_test") && same_text(info.name, "values") && info.user_cookie == 7);
  CHECK(info.arg_count == 6 && info.time > 0 && info.comm.length > 0 && info.file && info.full_name);

  struct usdtc_value value = value_of(event, 0);
  CHECK(value.kind == USDTC_VALUE_SIGNED && value.number.i == -n);
  value = value_of(event, 1);
  CHECK(value.kind == USDTC_VALUE_UNSIGNED && value.number.u == UINT64_MAX - (uint64_t)n);
  value = value_of(event, 2);
  CHECK(value.kind == USDTC_VALUE_FLOAT && value.number.f == 0.25 * (double)n);
  value = value_of(event, 3);
  CHECK(value.kind == USDTC_VALUE_FLOAT && value.number.f == 1.5);

  const char* word = kWords[n % WORDS];
  const bool cut = strlen(word) > 16;
  char shown[17] = "";
  snprintf(shown, sizeof(shown), "%s", word);
  value = value_of(event, 4);
  CHECK(value.kind == (word[0] == '\xff' ? USDTC_VALUE_BYTES : USDTC_VALUE_TEXT));
  CHECK(is_text(value.text, shown) && value.number.u == (uintptr_t)word);
  CHECK(((value.flags & USDTC_VALUE_TRUNCATED) != 0) == cut);

  value = value_of(event, 5);
  CHECK(value.kind == USDTC_VALUE_UNREADABLE && value.flags == 0 && value.text.length > 5);
  struct usdtc_arg arg = {.size = sizeof(arg)};
  CHECK(usdtc_event_arg(event, 4, &arg, NULL) == 0 && same_text(arg.name, "word") && arg.kind == USDTC_TYPE_TEXT);
  CHECK(usdtc_event_value(event, 6, &value, NULL) == -ENOENT && usdtc_event_arg(event, 6, &arg, NULL) == -ENOENT);
}

static void hands_out_the_values_that_were_passed(void) {
  usdtc_tracer* tracer =
      trace_own("usdtc_test:values", USDTC_TEXTS_DESCRIBED, (struct usdtc_trace_options){.string_size = 16});
  enum { HITS = 20 };
  for (int64_t n = 0; n < HITS; ++n) fire(n);
  usdtc_batch* first = take(tracer, 1000, 3);
  CHECK(usdtc_batch_count(first) == 3 && !usdtc_batch_event(first, 3));
  usdtc_event* kept = NULL;
  CHECK(usdtc_event_copy(usdtc_batch_event(first, 2), &kept, NULL) == 0);
  usdtc_tracer_detach(tracer);
  fire(1000); /* nobody looks */
  usdtc_batch* rest = take(tracer, 0, 0);
  CHECK(usdtc_batch_count(rest) == HITS - 3);
  usdtc_batch* none = take(tracer, 0, 0);
  CHECK(usdtc_batch_count(none) == 0);
  const struct usdtc_counts counts = total_of(tracer);
  CHECK(counts.hits == HITS && counts.delivered == HITS && counts.lost == 0 && counts.discarded == 0);
  usdtc_tracer_free(tracer);

  /* Events outlive their tracer, and a copy its batch. */
  check_values(usdtc_batch_event(first, 0), 0);
  usdtc_batch_free(first);
  check_values(kept, 2);
  usdtc_event_free(kept);
  for (size_t i = 0; i < usdtc_batch_count(rest); ++i) check_values(usdtc_batch_event(rest, i), (int64_t)i + 3);
  usdtc_batch_free(rest);
  usdtc_batch_free(none);
}

struct seen {
  uint32_t next;
  usdtc_event* last;
};

static void see(const usdtc_event* event, void* user) {
  struct seen* seen = user;
  const struct usdtc_value value = value_of(event, 0);
  CHECK(value.kind == USDTC_VALUE_UNSIGNED && value.number.u == seen->next);
  ++seen->next;
  usdtc_event_free(seen->last);
  CHECK(usdtc_event_copy(event, &seen->last, NULL) == 0);
}

static void shows_events_to_a_callback_and_accounts_for_each(void) {
  usdtc_tracer* tracer = trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){0});
  enum { HITS = 5000 };
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  struct seen seen = {0};
  size_t handed = 0;
  usdtc_error* error = NULL;
  int result = usdtc_tracer_poll(tracer, see, &seen, 0, 10, &handed, &error);
  CHECK(worked(result, error) && handed == 10);
  while (result == 0 && handed > 0) result = usdtc_tracer_poll(tracer, see, &seen, 100, 0, &handed, NULL);
  CHECK(seen.next == HITS);
  usdtc_tracer_detach(tracer);
  struct usdtc_counts counts = total_of(tracer);
  CHECK(counts.hits == HITS && counts.delivered == HITS);
  usdtc_ledger* ledger = NULL;
  CHECK(usdtc_tracer_ledger(tracer, &ledger, NULL) == 0);
  CHECK(usdtc_ledger_probe(ledger, 0, &counts, NULL) == 0 && counts.hits == HITS);
  CHECK(usdtc_ledger_probe(ledger, 1, &counts, NULL) == -ENOENT);
  usdtc_ledger_free(ledger);
  usdtc_tracer_free(tracer);
  CHECK(value_of(seen.last, 0).number.u == HITS - 1);
  usdtc_event_free(seen.last);
}

static void counts_what_the_ring_had_no_room_for(void) {
  usdtc_tracer* tracer = trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){.ring_bytes = 1});
  enum { HITS = 1000 };
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  usdtc_tracer_detach(tracer);
  usdtc_batch* batch = take(tracer, 0, 0);
  const struct usdtc_counts counts = total_of(tracer);
  CHECK(counts.delivered == usdtc_batch_count(batch) && counts.delivered > 0 && counts.lost > 0);
  CHECK(counts.hits == HITS && counts.hits == counts.delivered + counts.lost && counts.lost == counts.ring_full);
  usdtc_batch_free(batch);
  usdtc_tracer_free(tracer);
}

static void counts_what_nobody_wants_any_more(void) {
  usdtc_tracer* tracer = trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){0});
  for (uint32_t n = 0; n < 30; ++n) count(n);
  usdtc_batch_free(take(tracer, 0, 10));
  usdtc_tracer_discard(tracer);
  const struct usdtc_counts counts = total_of(tracer);
  CHECK(counts.hits == 30 && counts.delivered == 10 && counts.discarded == 20);
  usdtc_tracer_free(tracer);
}

static void only_counts_when_asked_to(void) {
  usdtc_tracer* tracer =
      trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){.flags = USDTC_TRACE_COUNT_ONLY});
  for (uint32_t n = 0; n < 77; ++n) count(n);
  usdtc_batch* batch = take(tracer, 0, 0);
  CHECK(usdtc_batch_count(batch) == 0 && total_of(tracer).hits == 77);
  usdtc_batch_free(batch);
  usdtc_tracer_free(tracer);
}

static bool readable(int fd, int timeout_ms) {
  struct pollfd wanted = {.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, timeout_ms) == 1;
}

static void has_a_descriptor_for_event_loops(void) {
  usdtc_tracer* tracer = trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){0});
  int fd = -1;
  CHECK(usdtc_tracer_fd(tracer, &fd, NULL) == 0 && fd >= 0);
  CHECK(!readable(fd, 0));
  count(0);
  CHECK(readable(fd, 5000));
  usdtc_batch* batch = take(tracer, 0, 0);
  CHECK(usdtc_batch_count(batch) == 1 && !readable(fd, 0));
  usdtc_batch_free(batch);
  usdtc_tracer_wake(tracer);
  CHECK(readable(fd, 5000));
  usdtc_batch_free(take(tracer, 0, 0));
  CHECK(!readable(fd, 0));
  usdtc_tracer_free(tracer);
}

static void* wake_soon(void* tracer) {
  usleep(50000);
  usdtc_tracer_wake(tracer);
  return NULL;
}

static void is_woken_by_another_thread(void) {
  usdtc_tracer* tracer = trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){0});
  pthread_t other;
  CHECK(pthread_create(&other, NULL, wake_soon, tracer) == 0);
  alarm(60); /* else nothing would end this */
  usdtc_batch* batch = take(tracer, -1, 0);
  alarm(0);
  CHECK(usdtc_batch_count(batch) == 0);
  pthread_join(other, NULL);
  usdtc_batch_free(batch);
  usdtc_tracer_free(tracer);
}

static void says_how_it_is_attached_and_what_was_noticed(void) {
  usdtc_tracer* tracer = trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){0});
  CHECK(strlen(usdtc_tracer_attachment(tracer)) > 10);
  struct usdtc_notice notice = {.size = sizeof(notice)};
  usdtc_error* error = NULL;
  const int result = usdtc_tracer_notice(tracer, 0, &notice, &error);
  CHECK(failed(result, error, ENOENT, USDTC_ERROR_NOT_FOUND, "no notice 0"));
  usdtc_tracer_free(tracer);
}

/* ---- tables and recordings ----------------------------------------------------------------------------------------
 */

static bool is_number(struct usdtc_wide number, int64_t expected) {
  const bool same = (int64_t)number.low == expected && number.high == (expected < 0 ? -1 : 0);
  if (!same) fprintf(stderr, "got %lld, expected %lld\n", (long long)number.low, (long long)expected);
  return same;
}

enum { TABLE_HITS = 3000, TABLE_ROWS = 3 };

/* Rows of count(0) to count(TABLE_HITS - 1) by "arg0 % 3", with sums, extremes and powers of 2 of the number. */
static void check_rows(const usdtc_rows* rows) {
  CHECK(usdtc_rows_count(rows) == TABLE_ROWS);
  CHECK(same_text(usdtc_rows_key_name(rows, 0), "arg0 % 3") && !usdtc_rows_key_name(rows, 1));
  for (size_t n = 0; n < usdtc_rows_count(rows); ++n) {
    struct usdtc_row row = {.size = sizeof(row)};
    struct usdtc_value key = {.size = sizeof(key)};
    CHECK(usdtc_rows_row(rows, n, &row, NULL) == 0 && usdtc_rows_key(rows, n, 0, &key, NULL) == 0);
    CHECK(row.key_count == 1 && (key.kind == USDTC_VALUE_SIGNED || key.kind == USDTC_VALUE_UNSIGNED));
    CHECK(key.number.u == n && row.count == TABLE_HITS / TABLE_ROWS);
    int64_t sum = 0;
    uint64_t in_range[65] = {0};
    for (uint64_t i = n; i < TABLE_HITS; i += TABLE_ROWS) {
      sum += (int64_t)i;
      ++in_range[i == 0 ? 0 : 64 - __builtin_clzll(i)];
    }
    CHECK(is_number(row.sum, sum) && is_number(row.minimum, (int64_t)n));
    CHECK(is_number(row.maximum, TABLE_HITS - TABLE_ROWS + (int64_t)n));
    for (uint32_t r = 0; r < row.range_count; ++r) {
      struct usdtc_range range = {.size = sizeof(range)};
      CHECK(usdtc_rows_range(rows, n, r, &range, NULL) == 0);
      const unsigned power = range.first.low == 0 ? 0 : 64 - (unsigned)__builtin_clzll(range.first.low);
      CHECK(range.last.low == (power == 0 ? 0 : (UINT64_C(1) << power) - 1) && range.count == in_range[power]);
      in_range[power] = 0;
    }
    for (size_t power = 0; power < 65; ++power) CHECK(in_range[power] == 0);
    CHECK(usdtc_rows_key(rows, n, 1, &key, NULL) == -ENOENT);
  }
  struct usdtc_row row = {.size = sizeof(row)};
  CHECK(usdtc_rows_row(rows, TABLE_ROWS, &row, NULL) == -ENOENT);
}

static const struct usdtc_table kByRemainder = {.size = sizeof(kByRemainder),
                                                .by = "arg0 % 3",
                                                .value = "arg0",
                                                .histogram = "arg0",
                                                .flags = USDTC_TABLE_EXTREMES};

static void puts_hits_into_rows(void) {
  usdtc_tracer* tracer =
      trace_plan(plan_options("usdtc_test:numbers", (struct usdtc_plan_options){.table = &kByRemainder}),
                 (struct usdtc_trace_options){0});
  for (uint32_t n = 0; n < TABLE_HITS; ++n) count(n);
  usdtc_tracer_detach(tracer);
  usdtc_batch* batch = take(tracer, 0, 0);
  CHECK(usdtc_batch_count(batch) == 0);
  usdtc_batch_free(batch);
  const struct usdtc_counts counts = total_of(tracer);
  CHECK(counts.hits == TABLE_HITS && counts.delivered == TABLE_HITS && counts.lost == 0);
  usdtc_rows* rows = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_tracer_rows(tracer, &rows, &error);
  CHECK(worked(result, error));
  usdtc_tracer_free(tracer);
  check_rows(rows); /* which outlive their tracer */
  usdtc_rows_free(rows);
}

static void rows_have_texts_and_names_for_keys(void) {
  const struct usdtc_table table = {.size = sizeof(table), .by = "probe, str(word)"};
  usdtc_tracer* tracer = trace_plan(plan_options("usdtc_test:values", (struct usdtc_plan_options){.table = &table}),
                                    (struct usdtc_trace_options){0});
  for (int64_t n = 0; n < 4 * WORDS; ++n) fire(n);
  usdtc_tracer_detach(tracer);
  const struct usdtc_counts counts = total_of(tracer);
  CHECK(counts.hits == 4 * WORDS && counts.delivered == 4 * WORDS && counts.lost == 0);
  usdtc_rows* rows = NULL;
  CHECK(usdtc_tracer_rows(tracer, &rows, NULL) == 0 && usdtc_rows_count(rows) == WORDS);
  bool seen[WORDS] = {false};
  for (size_t n = 0; n < usdtc_rows_count(rows); ++n) {
    struct usdtc_value probe = {.size = sizeof(probe)}, word = {.size = sizeof(word)};
    struct usdtc_row row = {.size = sizeof(row)};
    CHECK(usdtc_rows_key(rows, n, 0, &probe, NULL) == 0 && usdtc_rows_key(rows, n, 1, &word, NULL) == 0);
    CHECK(usdtc_rows_row(rows, n, &row, NULL) == 0 && row.count == 4 && row.range_count == 0);
    CHECK(probe.kind == USDTC_VALUE_TEXT && probe.text.length > 18 && probe.number.u == 0);
    for (size_t i = 0; i < WORDS; ++i) {
      if (word.text.length != strlen(kWords[i]) || memcmp(word.text.data, kWords[i], word.text.length) != 0) continue;
      CHECK(!seen[i] && word.kind == (kWords[i][0] == '\xff' ? USDTC_VALUE_BYTES : USDTC_VALUE_TEXT));
      seen[i] = true;
    }
  }
  for (size_t i = 0; i < WORDS; ++i) CHECK(seen[i]);
  usdtc_rows_free(rows);
  usdtc_tracer_free(tracer);
}

static void counts_what_there_is_no_row_for(void) {
  const struct usdtc_table table = {.size = sizeof(table), .by = "arg0", .max_rows = 8};
  usdtc_tracer* tracer = trace_plan(plan_options("usdtc_test:numbers", (struct usdtc_plan_options){.table = &table}),
                                    (struct usdtc_trace_options){0});
  for (uint32_t n = 0; n < TABLE_HITS; ++n) count(n);
  usdtc_tracer_detach(tracer);
  usdtc_rows* rows = NULL;
  CHECK(usdtc_tracer_rows(tracer, &rows, NULL) == 0);
  const struct usdtc_counts counts = total_of(tracer);
  CHECK(counts.hits == TABLE_HITS && counts.delivered >= 8 && counts.delivered == usdtc_rows_count(rows));
  CHECK(counts.lost > 0 && counts.lost == counts.table_full && counts.hits == counts.delivered + counts.lost);
  usdtc_rows_free(rows);
  usdtc_tracer_free(tracer);
}

static void asks_each_hit_a_question(void) {
  usdtc_tracer* tracer =
      trace_plan(plan_options("usdtc_test:numbers", (struct usdtc_plan_options){.where = "arg0 >= 90 && arg0 / 0 == 1"
                                                                                         " || arg0 < 10"}),
                 (struct usdtc_trace_options){0});
  for (uint32_t n = 0; n < 100; ++n) count(n);
  usdtc_tracer_detach(tracer);
  usdtc_batch* batch = take(tracer, 0, 0);
  CHECK(usdtc_batch_count(batch) == 10);
  for (size_t n = 0; n < usdtc_batch_count(batch); ++n) CHECK(value_of(usdtc_batch_event(batch, n), 0).number.u == n);
  usdtc_batch_free(batch);
  const struct usdtc_counts counts = total_of(tracer);
  CHECK(counts.hits == 100 && counts.delivered == 10 && counts.rejected == 80 && counts.unanswered == 10);
  usdtc_rows* rows = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_tracer_rows(tracer, &rows, &error);
  CHECK(!rows && failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "table"));
  usdtc_tracer_free(tracer);
}

static char recorded[] = "/tmp/usdtc_test.XXXXXX";

static usdtc_recording* replay(const struct usdtc_replay_options* options) {
  usdtc_recording* recording = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_recording_open(recorded, options, &recording, &error);
  CHECK(worked(result, error));
  if (!recording) exit(1);
  return recording;
}

/* Hits before it is recorded are not in the file; some are taken, the others polled. */
static void record_hits(void) {
  usdtc_tracer* tracer = trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){0});
  usdtc_error* error = NULL;
  count(12345);
  usdtc_batch_free(take(tracer, 1000, 0));
  CHECK(usdtc_tracer_poll(tracer, NULL, NULL, 0, 0, NULL, NULL) == -EINVAL);
  int result = usdtc_tracer_record(tracer, recorded, &error);
  CHECK(worked(result, error));
  result = usdtc_tracer_record(tracer, recorded, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "already"));
  for (uint32_t n = 0; n < TABLE_HITS; ++n) count(n);
  usdtc_batch* batch = take(tracer, 1000, 100);
  CHECK(usdtc_batch_count(batch) == 100);
  usdtc_batch_free(batch);
  usdtc_tracer_detach(tracer);
  size_t handed = 0;
  CHECK(usdtc_tracer_poll(tracer, NULL, NULL, 0, 0, &handed, NULL) == 0 && handed == TABLE_HITS - 100);
  result = usdtc_tracer_record_end(tracer, &error);
  CHECK(worked(result, error));
  CHECK(usdtc_tracer_record_end(tracer, NULL) == -EINVAL);
  usdtc_tracer_free(tracer);
}

static void records_and_replays_events(void) {
  close(mkstemp(recorded));
  record_hits();
  usdtc_recording* recording = replay(NULL);
  struct usdtc_recording_info about = {.size = sizeof(about)};
  CHECK(usdtc_recording_read(recording, &about, NULL) == 0 && !about.cut);
  CHECK(strncmp(about.made_by, "libusdt-c ", 10) == 0 && about.kernel[0] && about.machine[0]);
  const usdtc_plan* plan = usdtc_recording_plan(recording);
  CHECK(usdtc_plan_probe_count(plan) == 1 && strstr(usdtc_plan_probe_name(plan, 0), ":usdtc_test:numbers"));
  usdtc_tracer* tracer = NULL;
  usdtc_error* error = NULL;
  int result = usdtc_tracer_start(plan, NULL, &tracer, &error);
  CHECK(!tracer && failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "cannot be attached"));

  usdtc_batch* batch = NULL;
  CHECK(usdtc_recording_take(recording, 7, &batch, NULL) == 0 && usdtc_batch_count(batch) == 7);
  struct seen seen = {.next = 7};
  size_t handed = 0;
  result = usdtc_recording_poll(recording, see, &seen, 0, &handed, &error);
  CHECK(worked(result, error) && handed == TABLE_HITS - 7 && seen.next == TABLE_HITS);
  CHECK(usdtc_recording_poll(recording, see, &seen, 0, &handed, NULL) == 0 && handed == 0);
  usdtc_ledger* ledger = NULL;
  struct usdtc_counts counts = {.size = sizeof(counts)};
  CHECK(usdtc_recording_ledger(recording, &ledger, NULL) == 0 && usdtc_ledger_total(ledger, &counts, NULL) == 0);
  CHECK(counts.hits == TABLE_HITS + 1 && counts.delivered == counts.hits && counts.lost == 0);
  usdtc_ledger_free(ledger);
  usdtc_recording_free(recording);

  /* Events outlive their recording, and are of now. */
  const struct usdtc_event_info first = info_of(usdtc_batch_event(batch, 0));
  CHECK(first.pid == (uint32_t)getpid() && same_text(first.name, "numbers") && first.wall_time > first.time);
  const uint64_t now = (uint64_t)time(NULL) * 1000000000;
  CHECK(first.wall_time < now + 2000000000 && first.wall_time + 300000000000 > now);
  CHECK(value_of(seen.last, 0).number.u == TABLE_HITS - 1);
  usdtc_batch_free(batch);
  usdtc_event_free(seen.last);
}

static void replays_answer_questions_as_the_kernel_does(void) {
  struct usdtc_replay_options options = {.size = sizeof(options), .where = "arg0 > 5 && arg0 < 8"};
  usdtc_recording* recording = replay(&options);
  usdtc_batch* batch = NULL;
  CHECK(usdtc_recording_take(recording, 0, &batch, NULL) == 0 && usdtc_batch_count(batch) == 2);
  CHECK(value_of(usdtc_batch_event(batch, 1), 0).number.u == 7);
  usdtc_batch_free(batch);
  usdtc_rows* rows = NULL;
  CHECK(usdtc_recording_rows(recording, &rows, NULL) == -EINVAL);
  usdtc_recording_free(recording);

  options = (struct usdtc_replay_options){.size = sizeof(options), .table = &kByRemainder};
  recording = replay(&options);
  CHECK(usdtc_recording_take(recording, 0, &batch, NULL) == 0 && usdtc_batch_count(batch) == 0);
  usdtc_batch_free(batch);
  usdtc_error* error = NULL;
  int result = usdtc_recording_rows(recording, &rows, &error);
  CHECK(worked(result, error));
  usdtc_recording_free(recording);
  check_rows(rows);
  usdtc_rows_free(rows);

  options = (struct usdtc_replay_options){.size = sizeof(options), .where = "uid == 0"}; /* no event has it */
  result = usdtc_recording_open(recorded, &options, &recording, &error);
  CHECK(!recording && failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "uid"));
}

static void reads_a_recording_as_far_as_it_goes(void) {
  struct stat whole;
  CHECK(stat(recorded, &whole) == 0 && truncate(recorded, whole.st_size - 40) == 0);
  usdtc_recording* recording = replay(NULL);
  usdtc_batch* batch = NULL;
  CHECK(usdtc_recording_take(recording, 0, &batch, NULL) == 0 && usdtc_batch_count(batch) > 0);
  struct usdtc_recording_info about = {.size = sizeof(about)};
  CHECK(usdtc_recording_read(recording, &about, NULL) == 0 && about.cut && strstr(about.cut, "bytes"));
  usdtc_batch_free(batch);
  usdtc_recording_free(recording);
  CHECK(unlink(recorded) == 0);
}

static void says_when_a_recording_could_not_be_written(void) {
  usdtc_tracer* tracer = trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){0});
  usdtc_error* error = NULL;
  int result = usdtc_tracer_record(tracer, "/no/such/directory/file", &error);
  CHECK(failed(result, error, ENOENT, USDTC_ERROR_NOT_FOUND, "/no/such/directory/file"));
  result = usdtc_tracer_record(tracer, "/dev/full", &error); /* nothing is written before there is something to say */
  if (result == 0) {
    for (uint32_t n = 0; n < 100; ++n) count(n);
    usdtc_batch* batch = take(tracer, 1000, 0);
    CHECK(usdtc_batch_count(batch) > 0); /* events are handed out all the same */
    usdtc_batch_free(batch);
    result = usdtc_tracer_record_end(tracer, &error);
  }
  CHECK(usdtc_error_os_error(error) == ENOSPC);
  CHECK(failed(result, error, EIO, USDTC_ERROR_IO, ""));
  usdtc_tracer_free(tracer);
}

/* In a child that has given up its privilege. */
static void names_the_privilege_it_lacks(void) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(2);
    usdtc_error* error = NULL;
    int result = usdtc_check_privilege(&error);
    CHECK(failed(result, error, EPERM, USDTC_ERROR_NO_PERMISSION, "CAP_"));
    usdtc_plan* plan = plan_own("usdtc_test:numbers", 0);
    usdtc_tracer* tracer = NULL;
    result = usdtc_tracer_start(plan, NULL, &tracer, &error);
    CHECK(!tracer && failed(result, error, EPERM, USDTC_ERROR_NO_PERMISSION, ""));
    usdtc_plan_free(plan);
    _exit(failures == 0 ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct test {
  const char* name;
  void (*run)(void);
  bool live;
};
#define CASE(name, live) \
  { #name, name, live }
static const struct test kTests[] = {
    CASE(lists_its_own_probes_with_types, false),
    CASE(says_what_is_wrong_with_a_search, false),
    CASE(finds_nothing_in_a_file_without_probes, false),
    CASE(refuses_structs_of_sizes_that_cannot_be, false),
    CASE(takes_null_for_what_it_is, false),
    CASE(ends_early_when_asked_to, false),
    CASE(plans_what_the_options_say, false),
    CASE(says_what_is_wrong_with_a_question, false),
    CASE(takes_structs_of_the_first_version, false),
    CASE(says_what_is_no_recording, false),
    CASE(hands_out_the_values_that_were_passed, true),
    CASE(shows_events_to_a_callback_and_accounts_for_each, true),
    CASE(counts_what_the_ring_had_no_room_for, true),
    CASE(counts_what_nobody_wants_any_more, true),
    CASE(only_counts_when_asked_to, true),
    CASE(has_a_descriptor_for_event_loops, true),
    CASE(is_woken_by_another_thread, true),
    CASE(says_how_it_is_attached_and_what_was_noticed, true),
    CASE(puts_hits_into_rows, true),
    CASE(rows_have_texts_and_names_for_keys, true),
    CASE(counts_what_there_is_no_row_for, true),
    CASE(asks_each_hit_a_question, true),
    CASE(records_and_replays_events, true),
    CASE(replays_answer_questions_as_the_kernel_does, true),
    CASE(reads_a_recording_as_far_as_it_goes, true),
    CASE(says_when_a_recording_could_not_be_written, true),
    CASE(names_the_privilege_it_lacks, true),
};

int main(int argc, char** argv) {
  if (argc != 2 || (strcmp(argv[1], "pure") != 0 && strcmp(argv[1], "live") != 0)) {
    fprintf(stderr, "usage: c_test pure|live\n");
    return 2;
  }
  const bool live = strcmp(argv[1], "live") == 0;
  if (live && geteuid() != 0) {
    printf("SKIP live: needs root (attaching uprobes)\n");
    return 77;
  }
  for (size_t i = 0; i < sizeof(kTests) / sizeof(kTests[0]); ++i) {
    if (kTests[i].live != live) continue;
    const int before = failures;
    kTests[i].run();
    printf("%s %s\n", failures == before ? "PASS" : "FAIL", kTests[i].name);
  }
  return failures == 0 ? 0 : 1;
}
