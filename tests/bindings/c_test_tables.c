/* SPDX-License-Identifier: BSD-2-Clause */
/* <usdt/usdtc.h>: tables, guards and recordings. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "c_test.h"

enum { TABLE_HITS = 3000, TABLE_ROWS = 3 };

static bool is_number(struct usdtc_wide number, int64_t expected) {
  const bool same = (int64_t)number.low == expected && number.high == (expected < 0 ? -1 : 0);
  if (!same) fprintf(stderr, "got %lld, expected %lld\n", (long long)number.low, (long long)expected);
  return same;
}

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
  const struct counts counts = total_of(tracer);
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
  const struct counts counts = total_of(tracer);
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
  const struct counts counts = total_of(tracer);
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
  const struct counts counts = total_of(tracer);
  CHECK(counts.hits == 100 && counts.delivered == 10 && counts.rejected == 80 && counts.undecided == 10);
  usdtc_rows* rows = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_tracer_rows(tracer, &rows, &error);
  CHECK(!rows && failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "table"));
  usdtc_tracer_free(tracer);
}

static void rows_have_reals(void) {
  const struct usdtc_table table = {.size = sizeof(table),
                                    .by = "half",
                                    .value = "exact",
                                    .histogram = "exact",
                                    .flags = USDTC_TABLE_EXTREMES | USDTC_TABLE_REALS,
                                    .from = 5, /* from 0.5 to 2 by 0.5 */
                                    .to = 20,
                                    .step = 5,
                                    .digits = 1};
  usdtc_tracer* tracer = trace_plan(plan_options("usdtc_test:values", (struct usdtc_plan_options){.table = &table}),
                                    (struct usdtc_trace_options){0});
  enum { HITS = 20 };
  for (int64_t n = 0; n < HITS; ++n) fire(n); /* passes 0.25 * n */
  usdtc_tracer_detach(tracer);
  usdtc_rows* rows = NULL;
  CHECK(usdtc_tracer_rows(tracer, &rows, NULL) == 0 && usdtc_rows_count(rows) == 1);
  usdtc_tracer_free(tracer);
  struct usdtc_value key = {.size = sizeof(key)};
  struct usdtc_row row = {.size = sizeof(row)};
  CHECK(usdtc_rows_key(rows, 0, 0, &key, NULL) == 0 && key.kind == USDTC_VALUE_FLOAT && key.number.f == 1.5);
  CHECK(usdtc_rows_row(rows, 0, &row, NULL) == 0 && row.count == HITS && row.flags == USDTC_ROW_REAL);
  CHECK(row.real_sum == 47.5 && row.real_minimum == 0 && row.real_maximum == 4.75);
  CHECK(is_number(row.sum, 0) && is_number(row.maximum, 0));
  const double from[] = {-HUGE_VAL, 0.5, 1, 1.5, 2, HUGE_VAL};
  const uint64_t hits[] = {2, 2, 2, 2, 12};
  CHECK(row.range_count == 5);
  for (uint32_t r = 0; r < row.range_count; ++r) {
    struct usdtc_range range = {.size = sizeof(range)};
    CHECK(usdtc_rows_range(rows, 0, r, &range, NULL) == 0 && range.flags == USDTC_RANGE_REAL);
    CHECK(range.real_first == from[r] && range.real_end == from[r + 1] && range.count == hits[r]);
  }
  usdtc_rows_free(rows);
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
  CHECK(usdtc_recording_ledger(recording, &ledger, NULL) == 0);
  const struct counts counts = counts_of(ledger, SIZE_MAX);
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

/* Sums up the weights of events. */
static void weigh(const usdtc_event* event, void* user) { *(double*)user += info_of(event).weight; }

static bool adds_up(const struct counts* counts) {
  return counts->hits == counts->delivered + counts->lost + counts->rejected + counts->undecided + counts->not_sampled +
                             counts->held_back;
}

static void looks_at_a_sample_of_the_hits(void) {
  enum { HITS = 20000, ONE_IN = 4, OFF = 6 * 61 }; /* six standard deviations: once in 500 million runs */
  usdtc_tracer* tracer = trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){.sample = ONE_IN});
  CHECK(usdtc_tracer_record(tracer, recorded, NULL) == 0);
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  usdtc_tracer_detach(tracer);
  double weighed = 0, again = 0;
  size_t handed = 0;
  CHECK(usdtc_tracer_poll(tracer, weigh, &weighed, 0, 0, &handed, NULL) == 0);
  CHECK(handed > HITS / ONE_IN - OFF && handed < HITS / ONE_IN + OFF && weighed == ONE_IN * (double)handed);
  const struct counts counts = total_of(tracer);
  CHECK(counts.hits == HITS && counts.delivered == handed && counts.not_sampled > 0 && adds_up(&counts));
  CHECK(usdtc_tracer_record_end(tracer, NULL) == 0);
  usdtc_tracer_free(tracer);

  /* What a recording says of it. */
  usdtc_recording* recording = replay(NULL);
  CHECK(usdtc_recording_poll(recording, weigh, &again, 0, NULL, NULL) == 0 && again == weighed);
  usdtc_ledger* ledger = NULL;
  CHECK(usdtc_recording_ledger(recording, &ledger, NULL) == 0);
  const struct counts then = counts_of(ledger, SIZE_MAX);
  CHECK(then.hits == HITS && then.not_sampled == counts.not_sampled && adds_up(&then));
  usdtc_ledger_free(ledger);
  usdtc_recording_free(recording);
}

static int overhead_of(const usdtc_tracer* tracer, struct usdtc_overhead* overhead, usdtc_error** error) {
  usdtc_ledger* ledger = NULL;
  CHECK(usdtc_tracer_ledger(tracer, &ledger, NULL) == 0);
  const int result = usdtc_ledger_overhead(ledger, overhead, error);
  usdtc_ledger_free(ledger);
  return result;
}

static void holds_events_back_beyond_a_rate(void) {
  enum { HITS = 5000, RATE = 10 };
  usdtc_tracer* tracer = trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){.max_rate = RATE});
  for (uint32_t n = 0; n < HITS; ++n) count(n);
  usdtc_tracer_detach(tracer);
  usdtc_batch* batch = take(tracer, 0, 0);
  const struct counts counts = total_of(tracer);
  CHECK(counts.hits == HITS && counts.delivered == usdtc_batch_count(batch) && counts.delivered >= RATE);
  CHECK(counts.held_back > 0 && adds_up(&counts));
  usdtc_batch_free(batch);
  struct usdtc_overhead overhead = {.size = sizeof(overhead)};
  CHECK(overhead_of(tracer, &overhead, NULL) == -ENOENT);
  usdtc_tracer_free(tracer);
}

static void says_what_a_limited_overhead_came_to(void) {
  usdtc_tracer* tracer = trace_own("usdtc_test:numbers", 0, (struct usdtc_trace_options){.max_overhead = 0.05});
  count(1);
  usdtc_batch_free(take(tracer, 1000, 0));
  usdtc_tracer_detach(tracer);
  struct usdtc_overhead overhead = {.size = sizeof(overhead)};
  usdtc_error* error = NULL;
  int result = overhead_of(tracer, &overhead, &error);
  CHECK(worked(result, error));
  CHECK(overhead.allowed == 0.05 && overhead.windows >= 1 && overhead.of_hit > 0 && overhead.lasted > 0);
  CHECK(overhead.looked_at > 0 && overhead.looked_at <= 1 && (overhead.flags & USDTC_OVERHEAD_OF_PROCESSORS));
  usdtc_tracer_free(tracer);
  usdtc_plan* plan = plan_own("usdtc_test:numbers", 0);
  tracer = NULL;
  result = usdtc_tracer_start(
      plan,
      &(struct usdtc_trace_options){.size = sizeof(struct usdtc_trace_options), .max_overhead = 0.05, .sample = 2},
      &tracer, &error);
  CHECK(!tracer && failed(result, error, EINVAL, USDTC_ERROR_INVALID_ARGUMENT, "one of them"));
  usdtc_plan_free(plan);
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

const struct test kTableTests[] = {
    CASE(puts_hits_into_rows),
    CASE(rows_have_texts_and_names_for_keys),
    CASE(counts_what_there_is_no_row_for),
    CASE(rows_have_reals),
    CASE(asks_each_hit_a_question),
    CASE(holds_events_back_beyond_a_rate),
    CASE(says_what_a_limited_overhead_came_to),
    CASE(records_and_replays_events),
    CASE(replays_answer_questions_as_the_kernel_does),
    CASE(looks_at_a_sample_of_the_hits),
    CASE(reads_a_recording_as_far_as_it_goes),
    CASE(says_when_a_recording_could_not_be_written),
    {NULL, NULL},
};
