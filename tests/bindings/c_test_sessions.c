/* SPDX-License-Identifier: BSD-2-Clause */
/* <usdt/usdtc.h>: sessions, whose answers are values. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "c_test.h"

static const struct usdtc_sink kValues = {.size = sizeof(kValues), .flags = USDTC_SINK_VALUES};
static const char kNumbers[] = "usdt:/proc/self/exe:usdtc_test:numbers";
enum { HITS = 300 };

/* An option and its value; without a name it is behind the last one. */
struct option {
  const char *name, *value;
};

/* Asks about this process, or, with "replay" among the options, about a recording. */
static int ask(usdtc_session* session, const char* point, const struct option* options, const struct usdtc_sink* sink,
               usdtc_error** error) {
  usdtc_question* question = usdtc_question_new();
  char self[16];
  snprintf(self, sizeof(self), "%d", getpid());
  int result = usdtc_question_add(question, point, error);
  bool live = true;
  for (; result == 0 && options->name; ++options) {
    live = live && strcmp(options->name, "replay") != 0;
    result = usdtc_question_set(question, options->name, options->value, error);
  }
  if (result == 0 && live) result = usdtc_question_set(question, "pid", self, error);
  if (result == 0) result = usdtc_session_ask(session, question, NULL, &sink, 1, error);
  usdtc_question_free(question);
  return result;
}

/* A session that has begun to answer one question. */
static usdtc_session* begin(const char* point, const struct option* options, const struct usdtc_sink* sink) {
  usdtc_session* session = usdtc_session_new();
  usdtc_error* error = NULL;
  int result = ask(session, point, options, sink, &error);
  if (result == 0) result = usdtc_session_begin(session, &error);
  CHECK(worked(result, error));
  return session;
}

static void step_once(usdtc_session* session, int* more) {
  usdtc_error* error = NULL;
  const int result = usdtc_session_step(session, 50, more, &error);
  CHECK(worked(result, error));
}

static void step(usdtc_session* session) {
  int more = 0;
  step_once(session, &more);
}

static void finish(usdtc_session* session) {
  usdtc_error* error = NULL;
  const int result = usdtc_session_finish(session, &error);
  CHECK(worked(result, error));
}

static struct counts account_of(const usdtc_session* session) {
  usdtc_ledger* ledger = NULL;
  CHECK(usdtc_session_ledger(session, 0, &ledger, NULL) == 0);
  const struct counts counts = counts_of(ledger, SIZE_MAX);
  usdtc_ledger_free(ledger);
  return counts;
}

/* Takes all that is kept, whose numbers go on from `next`; returns the one behind the last. */
static uint32_t take_numbers(usdtc_session* session, uint32_t next) {
  usdtc_batch* batch = NULL;
  CHECK(usdtc_session_take(session, 0, 0, &batch, NULL) == 0);
  for (size_t n = 0; n < usdtc_batch_count(batch); ++n, ++next) {
    const usdtc_event* event = usdtc_batch_event(batch, n);
    const struct usdtc_event_info info = info_of(event);
    CHECK(value_of(event, 0).number.u == next && info.pid == (uint32_t)getpid() && info.wall_time > info.time);
    CHECK(same_text(info.name, "numbers") && strstr(info.full_name, ":usdtc_test:numbers"));
  }
  usdtc_batch_free(batch);
  return next;
}

static const struct option kNothing[] = {{NULL, NULL}};

static void events_of_a_session_are_values(void) {
  usdtc_session* session = begin(kNumbers, kNothing, &kValues);
  uint32_t next = 0;
  for (uint32_t n = 0; n < HITS; ++n) {
    count(n);
    if (n % 100 == 0) step(session);
    if (n % 100 == 0) next = take_numbers(session, next);
  }
  finish(session);
  usdtc_batch* batch = NULL;
  CHECK(usdtc_session_take(session, 0, 1, &batch, NULL) == 0 && usdtc_batch_count(batch) == 1);
  CHECK(value_of(usdtc_batch_event(batch, 0), 0).number.u == next);
  CHECK(take_numbers(session, next + 1) == HITS);
  const struct counts counts = account_of(session);
  CHECK(counts.hits == HITS && counts.delivered == HITS && counts.lost == 0);
  usdtc_rows* rows = NULL;
  CHECK(usdtc_session_rows(session, 0, &rows, NULL) == -EINVAL && !rows);
  usdtc_batch* none = NULL;
  CHECK(usdtc_session_take(session, 1, 0, &none, NULL) == -ENOENT && !none);
  usdtc_session_free(session);
  CHECK(value_of(usdtc_batch_event(batch, 0), 0).number.u == next); /* which outlives its session */
  usdtc_batch_free(batch);
}

static void a_callback_is_given_the_events_of_a_session(void) {
  struct seen seen = {0};
  const struct usdtc_sink sink = {.size = sizeof(sink), .flags = USDTC_SINK_VALUES, .on_event = see, .user = &seen};
  usdtc_session* session = begin(kNumbers, kNothing, &sink);
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  finish(session);
  CHECK(seen.next == HITS);
  usdtc_session_free(session);
  CHECK(value_of(seen.last, 0).number.u == HITS - 1);
  usdtc_event_free(seen.last);
}

static void rows_of_a_session_have_the_largest_first(void) {
  const struct option options[] = {{"by", "arg0 < 200"}, {"sum", "arg0"}, {"top", "1"}, {NULL, NULL}};
  usdtc_session* session = begin(kNumbers, options, &kValues);
  usdtc_rows* rows = NULL;
  CHECK(usdtc_session_rows(session, 0, &rows, NULL) == -ENOENT);
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  finish(session);
  CHECK(usdtc_session_rows(session, 0, &rows, NULL) == 0 && usdtc_rows_count(rows) == 1);
  CHECK(account_of(session).delivered == HITS);
  usdtc_session_free(session);
  struct usdtc_row row = {.size = sizeof(row)};
  struct usdtc_value key = {.size = sizeof(key)};
  CHECK(usdtc_rows_row(rows, 0, &row, NULL) == 0 && usdtc_rows_key(rows, 0, 0, &key, NULL) == 0);
  CHECK(key.number.u == 0 && row.count == 100 && row.sum.low == 24950); /* 200 to 299 */
  struct usdtc_wide wide;
  CHECK(usdtc_rows_percentile(rows, 0, 500, &wide, NULL) == -EINVAL);
  usdtc_rows_free(rows);
}

static void a_session_knows_percentiles_and_the_slowest(void) {
  const struct option latency[] = {{"latency", NULL}, {NULL, NULL}};
  usdtc_session* session = begin("ucall:/proc/self/exe:count", latency, &kValues);
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  finish(session);
  usdtc_rows* rows = NULL;
  CHECK(usdtc_session_rows(session, 0, &rows, NULL) == 0 && usdtc_rows_count(rows) == 1);
  usdtc_session_free(session);
  uint64_t before = 0;
  for (unsigned permille = 0; permille <= 1000; permille += 100) {
    struct usdtc_wide duration = {0};
    CHECK(usdtc_rows_percentile(rows, 0, permille, &duration, NULL) == 0);
    CHECK(duration.high == 0 && duration.low >= before && duration.low < 10000000000);
    before = duration.low;
  }
  CHECK(before > 0 && usdtc_rows_percentile(rows, 0, 1001, &(struct usdtc_wide){0}, NULL) == -EINVAL);
  usdtc_rows_free(rows);

  const struct option slowest[] = {{"slowest", "3"}, {NULL, NULL}};
  session = begin("ucall:/proc/self/exe:count", slowest, &kValues);
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  finish(session);
  usdtc_batch* batch = NULL;
  CHECK(usdtc_session_take(session, 0, 0, &batch, NULL) == 0 && usdtc_batch_count(batch) == 3);
  usdtc_session_free(session);
  before = UINT64_MAX;
  for (size_t n = 0; n < usdtc_batch_count(batch); ++n) {
    const uint64_t duration = info_of(usdtc_batch_event(batch, n)).duration;
    CHECK(duration > 0 && duration <= before);
    before = duration;
  }
  usdtc_batch_free(batch);
}

static void a_session_replays_what_a_session_recorded(void) {
  char file[] = "/tmp/usdtc_session.XXXXXX";
  close(mkstemp(file));
  const struct option record[] = {{"record", file}, {NULL, NULL}};
  usdtc_session* session = begin(kNumbers, record, &kValues);
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  finish(session);
  CHECK(take_numbers(session, 0) == HITS);
  usdtc_session_free(session);

  const struct option replay[] = {{"replay", file}, {NULL, NULL}};
  session = begin(kNumbers, replay, &kValues);
  for (int more = 1; more;) step_once(session, &more);
  finish(session);
  CHECK(take_numbers(session, 0) == HITS);
  const struct counts counts = account_of(session);
  CHECK(counts.hits == HITS && counts.delivered == HITS && counts.lost == 0);
  usdtc_session_free(session);
  CHECK(unlink(file) == 0);
}

/* Tries its parent's session in a child of fork(), and frees it. */
static void use_as_a_child(usdtc_session* session) {
  int more = 0;
  usdtc_batch* batch = NULL;
  usdtc_error* error = NULL;
  int result = usdtc_session_step(session, 0, &more, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "forked"));
  result = usdtc_session_take(session, 0, 0, &batch, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "forked"));
  result = usdtc_session_finish(session, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "forked"));
  usdtc_session_free(session);
  _exit(failures == 0 ? 0 : 1);
}

static void a_child_that_frees_a_session_leaves_it_to_its_parent(void) {
  char file[] = "/tmp/usdtc_session.XXXXXX";
  close(mkstemp(file));
  const struct option record[] = {{"record", file}, {NULL, NULL}};
  usdtc_session* session = begin(kNumbers, record, &kValues);
  for (uint32_t n = 0; n < HITS / 2; ++n) count(n);
  step(session); /* the rest of the file is in a buffer, which the child has, too */
  for (int children = 0; children < 3; ++children) {
    const pid_t child = fork();
    if (child == 0) use_as_a_child(session);
    int status = 0;
    alarm(60); /* else nothing would end this */
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    alarm(0);
  }
  for (uint32_t n = HITS / 2; n < HITS; ++n) count(n);
  step(session);
  finish(session);
  CHECK(take_numbers(session, 0) == HITS);
  const struct counts counts = account_of(session);
  CHECK(counts.hits == HITS && counts.delivered == HITS && counts.lost == 0);
  usdtc_session_free(session);

  usdtc_recording* recording = NULL;
  usdtc_batch* batch = NULL;
  struct usdtc_recording_info about = {.size = sizeof(about)};
  CHECK(usdtc_recording_open(file, NULL, &recording, NULL) == 0);
  CHECK(usdtc_recording_take(recording, 0, &batch, NULL) == 0 && usdtc_batch_count(batch) == HITS);
  CHECK(usdtc_recording_read(recording, &about, NULL) == 0 && !about.cut);
  usdtc_batch_free(batch);
  usdtc_recording_free(recording);
  CHECK(unlink(file) == 0);
}

static size_t text_from(usdtc_session* session, uint64_t from, struct usdtc_text* text) {
  usdtc_error* error = NULL;
  const int result = usdtc_session_text(session, from, text, &error);
  CHECK(worked(result, error));
  return text->length;
}

static void kept_text_is_there_until_it_is_passed_over(void) {
  const struct usdtc_sink keep = {.size = sizeof(keep), .flags = USDTC_SINK_KEEP};
  usdtc_session* session = begin(kNumbers, kNothing, &keep);
  struct usdtc_text text = {0};
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  step(session);
  const uint64_t first = text_from(session, 0, &text);
  CHECK(first > 100 && text.data[0] == '{' && text.data[first - 1] == '\n');
  CHECK(text_from(session, 0, &text) == first); /* as if the first call had been interrupted */
  finish(session);
  const size_t rest = text_from(session, first, &text);
  CHECK(rest > 100 && text.data[0] == '{' && text.data[rest - 1] == '\n');
  CHECK(text_from(session, first + rest, &text) == 0);
  usdtc_error* error = NULL;
  int result = usdtc_session_text(session, first, &text, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "no text from byte"));
  result = usdtc_session_text(session, first + rest + 1, &text, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "no text from byte"));
  usdtc_session_free(session);
}

static void a_session_that_has_begun_is_asked_nothing_more(void) {
  usdtc_session* session = begin(kNumbers, kNothing, &kValues);
  usdtc_error* error = NULL;
  int result = ask(session, kNumbers, kNothing, &kValues, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "has begun"));
  finish(session);
  usdtc_batch* batch = NULL;
  CHECK(usdtc_session_take(session, 1, 0, &batch, NULL) == -ENOENT && !batch);
  int more = 1;
  CHECK(usdtc_session_step(session, INT_MIN, &more, NULL) == 0 && more == 0); /* it is over */
  usdtc_session_free(session);
}

static void files_of_a_session_are_one_sink_each(void) {
  char file[] = "/tmp/usdtc_session.XXXXXX";
  close(mkstemp(file));
  const struct usdtc_sink json = {.size = sizeof(json), .file = file};
  const struct option record[] = {{"record", file}, {NULL, NULL}};
  usdtc_session* session = usdtc_session_new();
  usdtc_error* error = NULL;
  int result = ask(session, kNumbers, record, &json, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "one file"));
  result = ask(session, kNumbers, record, &kValues, &error); /* what was refused has not taken the file */
  CHECK(worked(result, error));
  result = ask(session, kNumbers, kNothing, &json, &error);
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "one file"));
  result = usdtc_session_begin(session, &error);
  CHECK(worked(result, error));
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  finish(session);
  CHECK(take_numbers(session, 0) == HITS);
  usdtc_session_free(session);

  session = usdtc_session_new();
  const struct option replay[] = {{"replay", file}, {NULL, NULL}};
  result = ask(session, kNumbers, replay, &json, &error); /* it would be emptied before it is read */
  CHECK(failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "the recording itself"));
  result = ask(session, kNumbers, replay, &kValues, &error);
  if (result == 0) result = usdtc_session_begin(session, &error);
  CHECK(worked(result, error));
  for (int more = 1; more;) step_once(session, &more);
  finish(session);
  CHECK(take_numbers(session, 0) == HITS);
  usdtc_session_free(session);
  CHECK(unlink(file) == 0);
}

static void ignore(int number) { (void)number; }

/* A profiler's timer, say. Calls that it interrupts are not begun again. */
static void signals_all_the_time_lose_nothing(void) {
  const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  struct sigaction before, action = {.sa_handler = ignore};
  CHECK(sigaction(SIGALRM, &action, &before) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
  for (int rounds = 0; rounds < 3; ++rounds) {
    usdtc_session* session = begin(kNumbers, kNothing, &kValues);
    for (uint32_t n = 0; n < HITS; ++n) {
      count(n);
      if (n % 50 == 0) step(session);
    }
    finish(session);
    CHECK(take_numbers(session, 0) == HITS);
    usdtc_session_free(session);
  }
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0 && sigaction(SIGALRM, &before, NULL) == 0);
}

/* Ends a session when there is no memory but `spare` bytes: what it says then does not matter. */
static void end_without_memory(size_t spare) {
  usdtc_session* session = begin(kNumbers, kNothing, &kValues);
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  void* volatile taken = malloc(spare); /* volatile: else compilers leave malloc() out */
  void* last = taken;
  CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){0, 0}) == 0);
  for (size_t bytes = 1 << 20; bytes >= 16; bytes /= 2) {
    do {
      taken = malloc(bytes);
    } while (taken);
  }
  free(last);
  usdtc_session_finish(session, NULL);
  usdtc_session_free(session);
  _exit(failures == 0 ? 0 : 1);
}

static void a_session_ends_without_memory(void) {
  for (size_t spare = 1 << 10; spare <= 1 << 20; spare *= 32) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20); /* else nothing would end this */
      end_without_memory(spare);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
}

/* The number of lines in `text` that begin with `beginning`. */
static uint64_t lines_that_begin(struct usdtc_text text, const char* beginning) {
  uint64_t lines = 0;
  const size_t length = strlen(beginning);
  for (size_t at = 0; at < text.length;) {
    lines += text.length - at >= length && memcmp(text.data + at, beginning, length) == 0;
    const char* end = memchr(text.data + at, '\n', text.length - at);
    at = end ? (size_t)(end + 1 - text.data) : text.length;
  }
  return lines;
}

static void what_nobody_takes_has_a_limit_and_is_accounted_for(void) {
  enum { MANY = 50000, ROOM = 1 << 20 };
  struct usdtc_sink sink = {.size = sizeof(sink), .flags = USDTC_SINK_VALUES, .max_kept = ROOM};
  usdtc_session* session = begin(kNumbers, kNothing, &sink);
  for (uint32_t n = 0; n < MANY; ++n) {
    count(n);
    if (n % 1000 == 0) step(session);
  }
  for (int steps = 0; steps < 100; ++steps) step(session);
  const uint32_t taken = take_numbers(session, 0); /* the oldest, none left out among them */
  CHECK(taken > ROOM / 1000 && taken < ROOM / 100);
  count(MANY); /* for which there is room again */
  finish(session);
  CHECK(take_numbers(session, MANY) == MANY + 1);
  const struct counts counts = account_of(session);
  CHECK(counts.hits == MANY + 1 && counts.delivered == taken + 1 && counts.lost == MANY - taken);
  usdtc_session_free(session);

  sink.flags = USDTC_SINK_KEEP;
  session = begin(kNumbers, kNothing, &sink);
  for (uint32_t n = 0; n < MANY; ++n) count(n);
  int more = 1;
  for (int steps = 0; more && steps < 100; ++steps) step_once(session, &more);
  CHECK(more == 0);
  usdtc_error* error = NULL;
  const int result = usdtc_session_finish(session, &error);
  CHECK(failed(result, error, E2BIG, USDTC_ERROR_LIMIT, "max_kept"));
  struct usdtc_text text = {0};
  CHECK(text_from(session, 0, &text) <= ROOM && text.length > ROOM / 2);
  const struct counts lines = account_of(session);
  CHECK(lines.hits == MANY && lines.delivered == lines_that_begin(text, "{\"v\":1,\"type\":\"event\""));
  CHECK(lines.delivered + lines.lost == MANY);
  usdtc_session_free(session);
}

const struct test kSessionTests[] = {
    CASE(what_nobody_takes_has_a_limit_and_is_accounted_for),
    CASE(a_session_that_has_begun_is_asked_nothing_more),
    CASE(files_of_a_session_are_one_sink_each),
    CASE(signals_all_the_time_lose_nothing),
    CASE(a_session_ends_without_memory),
    CASE(kept_text_is_there_until_it_is_passed_over),
    CASE(events_of_a_session_are_values),
    CASE(a_callback_is_given_the_events_of_a_session),
    CASE(rows_of_a_session_have_the_largest_first),
    CASE(a_session_knows_percentiles_and_the_slowest),
    CASE(a_session_replays_what_a_session_recorded),
    CASE(a_child_that_frees_a_session_leaves_it_to_its_parent),
    {NULL, NULL},
};
