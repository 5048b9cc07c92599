/* SPDX-License-Identifier: BSD-2-Clause */
/* <usdt/usdtc.h>: events, whom they wake, and what is counted of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "c_test.h"

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
  const struct counts counts = total_of(tracer);
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
  const struct counts counts = total_of(tracer);
  CHECK(counts.hits == HITS && counts.delivered == HITS);
  usdtc_ledger* ledger = NULL;
  CHECK(usdtc_tracer_ledger(tracer, &ledger, NULL) == 0);
  CHECK(counts_of(ledger, 0).hits == HITS);
  uint64_t value = 0;
  CHECK(usdtc_ledger_value(ledger, 1, "hits", &value, NULL) == -ENOENT);
  CHECK(usdtc_ledger_value(ledger, 0, "hints", &value, &error) == -ENOENT);
  CHECK(failed(-ENOENT, error, ENOENT, USDTC_ERROR_NOT_FOUND, "hints"));
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
  const struct counts counts = total_of(tracer);
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
  const struct counts counts = total_of(tracer);
  CHECK(counts.hits == 30 && counts.delivered == 10 && counts.discarded == 20 && counts.lost == 20);
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

const struct test kEventTests[] = {
    CASE(hands_out_the_values_that_were_passed),
    CASE(shows_events_to_a_callback_and_accounts_for_each),
    CASE(counts_what_the_ring_had_no_room_for),
    CASE(counts_what_nobody_wants_any_more),
    CASE(only_counts_when_asked_to),
    CASE(has_a_descriptor_for_event_loops),
    CASE(is_woken_by_another_thread),
    CASE(says_how_it_is_attached_and_what_was_noticed),
    CASE(names_the_privilege_it_lacks),
    {NULL, NULL},
};
