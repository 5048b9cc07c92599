/* SPDX-License-Identifier: BSD-2-Clause */
/* <usdt/usdtc.h> from C11: this program has probes, traces itself, and compares what arrives with what it passed.
 *     c_test CASE...     runs them; 0: all right, 1: not, 77: skipped */
#define _GNU_SOURCE
#include "c_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usdt/probe.h>

int failures;

bool same_text(const char* text, const char* expected) {
  const bool same = text && strcmp(text, expected) == 0;
  if (!same) fprintf(stderr, "got '%s', expected '%s'\n", text ? text : "(NULL)", expected);
  return same;
}

bool is_text(struct usdtc_text text, const char* expected) {
  const bool same = text.length == strlen(expected) && memcmp(text.data, expected, text.length) == 0;
  if (!same) fprintf(stderr, "got '%.*s', expected '%s'\n", (int)text.length, text.data, expected);
  return same;
}

bool worked(int result, usdtc_error* error) {
  if (result != 0) fprintf(stderr, "%d: %s\n%s", result, usdtc_error_message(error), usdtc_error_log(error));
  const bool right = result == 0 && !error;
  usdtc_error_free(error);
  return right;
}

bool failed(int result, usdtc_error* error, int number, uint32_t kind, const char* words) {
  const bool right = result == -number && usdtc_error_kind(error) == kind && strstr(usdtc_error_message(error), words);
  if (!right)
    fprintf(stderr, "got %d, kind %u: '%s'; expected %d, kind %u: '%s'\n", result, usdtc_error_kind(error),
            usdtc_error_message(error), -number, kind, words);
  usdtc_error_free(error);
  return right;
}

/* ---- what this program passes to its probes --------------------------------------------------------------------- */

USDT_PROBE_DECLARE(usdtc_test, values, "small, large, exact, half, word:string, wrong:string");

const char* const kWords[WORDS] = {"zero", "one", "na\xc3\xafve", "\xff\xfe", "a text that is longer than sixteen"};

__attribute__((noinline)) void fire(int64_t n) {
  const int16_t small = (int16_t)(-n);
  const uint64_t large = UINT64_MAX - (uint64_t)n;
  const double exact = 0.25 * (double)n;
  const float half = 1.5F;
  const char* word = kWords[n % WORDS];
  const char* wrong = (const char*)8; /* nothing is there */
  USDT_PROBE(usdtc_test, values, small, large, exact, half, word, wrong);
}

__attribute__((noinline)) void count(uint32_t n) { USDT_PROBE(usdtc_test, numbers, n); }

/* ---- shorthands -------------------------------------------------------------------------------------------------- */

const char* const kSelf = "/proc/self/exe";

usdtc_selection* select_own(const char* pattern) {
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

usdtc_plan* plan_options(const char* pattern, struct usdtc_plan_options options) {
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

usdtc_plan* plan_own(const char* pattern, uint32_t texts) {
  return plan_options(pattern, (struct usdtc_plan_options){.texts = texts});
}

usdtc_tracer* trace_plan(usdtc_plan* plan, struct usdtc_trace_options options) {
  usdtc_tracer* tracer = NULL;
  usdtc_error* error = NULL;
  options.size = sizeof(options);
  const int result = usdtc_tracer_start(plan, &options, &tracer, &error);
  CHECK(worked(result, error));
  usdtc_plan_free(plan);
  if (!tracer) exit(1);
  return tracer;
}

usdtc_tracer* trace_own(const char* pattern, uint32_t texts, struct usdtc_trace_options options) {
  return trace_plan(plan_own(pattern, texts), options);
}

usdtc_batch* take(usdtc_tracer* tracer, int timeout_ms, size_t limit) {
  usdtc_batch* batch = NULL;
  usdtc_error* error = NULL;
  const int result = usdtc_tracer_take(tracer, timeout_ms, limit, &batch, &error);
  CHECK(worked(result, error));
  return batch;
}

struct usdtc_event_info info_of(const usdtc_event* event) {
  struct usdtc_event_info info = {.size = sizeof(info)};
  CHECK(usdtc_event_read(event, &info, NULL) == 0);
  return info;
}

struct usdtc_value value_of(const usdtc_event* event, size_t n) {
  struct usdtc_value value = {.size = sizeof(value)};
  CHECK(usdtc_event_value(event, n, &value, NULL) == 0);
  return value;
}

static uint64_t number_of(const usdtc_ledger* ledger, size_t probe, const char* name) {
  uint64_t value = 0;
  usdtc_error* error = NULL;
  const int result = usdtc_ledger_value(ledger, probe, name, &value, &error);
  CHECK(worked(result, error));
  return value;
}

struct counts counts_of(const usdtc_ledger* ledger, size_t probe) {
  return (struct counts){.hits = number_of(ledger, probe, "hits"),
                         .delivered = number_of(ledger, probe, "delivered"),
                         .lost = number_of(ledger, probe, "lost"),
                         .ring_full = number_of(ledger, probe, "ring_full"),
                         .discarded = number_of(ledger, probe, "discarded"),
                         .rejected = number_of(ledger, probe, "rejected"),
                         .undecided = number_of(ledger, probe, "undecided"),
                         .table_full = number_of(ledger, probe, "table_full"),
                         .not_sampled = number_of(ledger, probe, "not_sampled"),
                         .held_back = number_of(ledger, probe, "held_back")};
}

struct counts total_of(const usdtc_tracer* tracer) {
  usdtc_ledger* ledger = NULL;
  CHECK(usdtc_tracer_ledger(tracer, &ledger, NULL) == 0);
  const struct counts counts = counts_of(ledger, SIZE_MAX);
  usdtc_ledger_free(ledger);
  return counts;
}

void see(const usdtc_event* event, void* user) {
  struct seen* seen = user;
  const struct usdtc_value value = value_of(event, 0);
  CHECK(value.kind == USDTC_VALUE_UNSIGNED && value.number.u == seen->next);
  ++seen->next;
  usdtc_event_free(seen->last);
  CHECK(usdtc_event_copy(event, &seen->last, NULL) == 0);
}

static void run(const struct test* tests) {
  for (; tests->name; ++tests) {
    const int before = failures;
    tests->run();
    printf("%s %s\n", failures == before ? "PASS" : "FAIL", tests->name);
  }
}

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
  if (!live) run(kPureTests);
  if (live) run(kEventTests);
  if (live) run(kTableTests);
  if (live) run(kSessionTests);
  return failures == 0 ? 0 : 1;
}
