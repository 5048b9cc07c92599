/* SPDX-License-Identifier: BSD-2-Clause */
/* <usdt/usdtc.h> without any privilege: what is found, planned, refused; and the structs as other languages know them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "c_test.h"

/* They only ever grow at the end. */
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
AT(usdtc_table, digits, 44);
_Static_assert(sizeof(struct usdtc_row) == 112, "usdtc_row");
AT(usdtc_row, maximum, 48);
AT(usdtc_row, real_maximum, 96);
AT(usdtc_row, distinct, 104);
_Static_assert(sizeof(struct usdtc_range) == 72, "usdtc_range");
AT(usdtc_range, count, 40);
AT(usdtc_range, real_end, 64);
_Static_assert(sizeof(struct usdtc_replay_options) == 24, "usdtc_replay_options");
_Static_assert(sizeof(struct usdtc_recording_info) == 40, "usdtc_recording_info");
_Static_assert(sizeof(struct usdtc_plan_options) == 96, "usdtc_plan_options");
AT(usdtc_plan_options, user_cookie, 24);
AT(usdtc_plan_options, text_args, 40);
AT(usdtc_plan_options, stop, 72);
AT(usdtc_plan_options, table, 88);
_Static_assert(sizeof(struct usdtc_trace_options) == 56, "usdtc_trace_options");
AT(usdtc_trace_options, family, 24);
AT(usdtc_trace_options, max_overhead, 48);
_Static_assert(sizeof(struct usdtc_overhead) == 80, "usdtc_overhead");
AT(usdtc_overhead, windows, 40);
AT(usdtc_overhead, trouble, 72);
_Static_assert(sizeof(struct usdtc_event_info) == 136, "usdtc_event_info");
AT(usdtc_event_info, time, 24);
AT(usdtc_event_info, address, 56);
AT(usdtc_event_info, comm, 72);
AT(usdtc_event_info, name, 112);
AT(usdtc_event_info, wall_time, 120);
AT(usdtc_event_info, weight, 128);
_Static_assert(sizeof(struct usdtc_value) == 56, "usdtc_value");
AT(usdtc_value, number, 16);
AT(usdtc_value, enumerator, 40);
_Static_assert(sizeof(struct usdtc_sink) == 72, "usdtc_sink");
AT(usdtc_sink, flags, 40);
AT(usdtc_sink, on_event, 48);
AT(usdtc_sink, max_kept, 56);
AT(usdtc_sink, listen, 64);
#endif

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
    CHECK(strstr(point.source_file, "c_test.c") && point.source_line > 40);
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
  CHECK(usdtc_question_add(NULL, NULL, NULL) == -EINVAL && usdtc_question_set(NULL, NULL, NULL, NULL) == -EINVAL);
  CHECK(usdtc_question_check(NULL, NULL) == -EINVAL && usdtc_session_ask(NULL, NULL, NULL, NULL, 0, NULL) == -EINVAL);
  CHECK(usdtc_session_begin(NULL, NULL) == -EINVAL && usdtc_session_step(NULL, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_session_finish(NULL, NULL) == -EINVAL && usdtc_session_fd(NULL, NULL, NULL) == -EINVAL);
  CHECK(usdtc_session_notice(NULL, 0, NULL, NULL) == -EINVAL && usdtc_session_take(NULL, 0, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_session_rows(NULL, 0, NULL, NULL) == -EINVAL && usdtc_session_ledger(NULL, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_session_text(NULL, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_ledger_value(NULL, 0, NULL, NULL, NULL) == -EINVAL &&
        usdtc_ledger_values(NULL, 0, NULL, 0, NULL) == -EINVAL);
  CHECK(usdtc_ledger_overhead(NULL, NULL, NULL) == -EINVAL && usdtc_rows_percentile(NULL, 0, 0, NULL, NULL) == -EINVAL);
  CHECK(usdtc_option_describe(0, NULL, NULL) == -EINVAL && usdtc_format_describe(0, NULL, NULL) == -EINVAL);
  usdtc_session_stop(NULL);
  usdtc_session_free(NULL);
  usdtc_question_free(NULL);
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

static int take_none(const char* text, size_t length, void* user) {
  (void)text, (void)length, (void)user;
  return 1;
}

static void describes_options_and_formats(void) {
  struct usdtc_option option = {.size = sizeof(option)};
  size_t options = 0, repeat = 0, of_replay = 0;
  for (; usdtc_option_describe(options, &option, NULL) == 0; ++options) {
    CHECK(option.name && option.name[0] != '-' && option.description && option.group);
    CHECK(option.value_name || (option.flags & USDTC_OPTION_BARE) != 0);
    repeat += (option.flags & USDTC_OPTION_REPEATS) != 0;
    of_replay += (option.flags & USDTC_OPTION_REPLAY) != 0;
  }
  CHECK(options > 50 && repeat > 0 && of_replay > 10 && of_replay < options);
  struct usdtc_format format = {.size = sizeof(format)};
  CHECK(usdtc_format_describe(1, &format, NULL) == 0 && same_text(format.name, "json") && format.has_lines == 1);
  CHECK(usdtc_format_describe(99, &format, NULL) == -ENOENT);
}

static void says_what_is_wrong_with_a_question_as_text(void) {
  usdtc_error* error = NULL;
  usdtc_question* question = usdtc_question_new();
  int result = usdtc_question_check(question, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "name a probe"));
  result = usdtc_question_set(question, "wehre", "arg0 > 1", &error);
  CHECK(failed(result, error, ENOENT, USDTC_ERROR_NOT_FOUND, "did you mean where?"));
  result = usdtc_question_set(question, "max-events", "many", &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "max-events: 'many' is not a whole number"));
  result = usdtc_question_add(question, "usdtc_test:numbers", &error);
  CHECK(worked(result, error));
  result = usdtc_question_set(question, "where", "arg0 >", &error);
  CHECK(worked(result, error)); /* it is read when all is there */
  result = usdtc_question_check(question, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_SYNTAX, "where"));
  usdtc_question_free(question);
}

static void says_what_is_wrong_with_a_session(void) {
  usdtc_error* error = NULL;
  usdtc_session* session = usdtc_session_new();
  int more = 1;
  int result = usdtc_session_begin(session, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "asked"));
  result = usdtc_session_step(session, 0, &more, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "not begun"));
  CHECK(more == 0);
  usdtc_question* question = usdtc_question_new();
  result = usdtc_question_add(question, "usdtc_test:numbers", &error);
  CHECK(worked(result, error));
  const struct usdtc_sink other = {.size = sizeof(other), .format = "xml", .on_text = take_none};
  const struct usdtc_sink* sinks[] = {&other};
  result = usdtc_session_ask(session, question, NULL, sinks, 1, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "\"xml\" is no format"));
  sinks[0] = NULL;
  result = usdtc_session_ask(session, question, NULL, sinks, 1, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "a sink is NULL"));
  const struct usdtc_sink nowhere = {.size = sizeof(nowhere), .file = "/no/such/directory/a.json"};
  sinks[0] = &nowhere;
  result = usdtc_session_ask(session, question, NULL, sinks, 1, &error);
  CHECK(failed(result, error, ENOENT, USDTC_ERROR_NOT_FOUND, "/no/such/directory/a.json"));
  usdtc_session_free(session);
  usdtc_question_free(question);
}

/* A question with an option, whose answers go to `sinks`, is refused. */
static void refuses_all(const char* option, const char* value, const struct usdtc_sink* const* sinks, size_t count,
                        const char* words) {
  usdtc_error* error = NULL;
  usdtc_session* session = usdtc_session_new();
  usdtc_question* question = usdtc_question_new();
  CHECK(usdtc_question_add(question, "usdtc_test:numbers", NULL) == 0);
  if (option) CHECK(usdtc_question_set(question, option, value, NULL) == 0);
  const int result = usdtc_session_ask(session, question, NULL, sinks, count, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, words));
  usdtc_batch* batch = NULL;
  CHECK(usdtc_session_take(session, 0, 0, &batch, NULL) == -ENOENT); /* it was not asked */
  usdtc_session_free(session);
  usdtc_question_free(question);
}

/* A question with an option, whose answers go to `sink`, is refused. */
static void refuses(const char* option, const char* value, const struct usdtc_sink* sink, const char* words) {
  refuses_all(option, value, &sink, 1, words);
}

static void says_what_cannot_be_values(void) {
  const struct usdtc_sink values = {.size = sizeof(values), .flags = USDTC_SINK_VALUES};
  refuses("heatmap", "arg0", &values, "heat map");
  refuses("by", "ustack", &values, "stacks");
  refuses(NULL, NULL, &(struct usdtc_sink){.size = sizeof(values), .flags = 3}, "one of them");
  refuses(NULL, NULL, &(struct usdtc_sink){.size = sizeof(values), .flags = 4}, "bits that mean nothing");
  refuses(NULL, NULL, &(struct usdtc_sink){.size = sizeof(values), .flags = 2, .format = "json"}, "no format");
  refuses(NULL, NULL, &(struct usdtc_sink){.size = sizeof(values), .flags = 2, .file = "a.json"}, "one of them");
  refuses(NULL, NULL, &(struct usdtc_sink){.size = sizeof(values), .on_event = see}, "USDTC_SINK_VALUES");
  refuses(NULL, NULL, &(struct usdtc_sink){.size = sizeof(values), .max_kept = 1}, "keeps nothing");
  refuses(NULL, NULL, &(struct usdtc_sink){.size = sizeof(values), .file = ""}, "is empty");
  const struct usdtc_sink* const twice[] = {&values, &values};
  refuses_all(NULL, NULL, twice, 2, "one sink");
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
  result = plan_table((struct usdtc_table){.value = "exact"}, &error); /* a real, which older programs do not know of */
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, ""));
  result = plan_table((struct usdtc_table){.value = "exact", .flags = USDTC_TABLE_REALS}, &error);
  CHECK(worked(result, error));
  result = plan_table((struct usdtc_table){.histogram = "large", .digits = 1, .to = 10, .step = 1}, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "not of reals"));
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

const struct test kPureTests[] = {
    CASE(lists_its_own_probes_with_types),
    CASE(says_what_is_wrong_with_a_search),
    CASE(finds_nothing_in_a_file_without_probes),
    CASE(refuses_structs_of_sizes_that_cannot_be),
    CASE(takes_null_for_what_it_is),
    CASE(describes_options_and_formats),
    CASE(says_what_is_wrong_with_a_question_as_text),
    CASE(says_what_is_wrong_with_a_session),
    CASE(says_what_cannot_be_values),
    CASE(ends_early_when_asked_to),
    CASE(plans_what_the_options_say),
    CASE(says_what_is_wrong_with_a_question),
    CASE(takes_structs_of_the_first_version),
    CASE(says_what_is_no_recording),
    {NULL, NULL},
};
