/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of c_test share: this program has probes, traces itself, and compares what arrives with what it
 * passed. */
#ifndef USDT_TESTS_BINDINGS_C_TEST_H
#define USDT_TESTS_BINDINGS_C_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <usdt/usdtc.h>

extern int failures;

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                             \
    }                                                                         \
  } while (0)

struct test {
  const char* name; /* NULL: behind the last one */
  void (*run)(void);
};
#define CASE(name) \
  { #name, name }

extern const struct test kPureTests[];    /* c_test_pure.c: need no privilege */
extern const struct test kEventTests[];   /* c_test_events.c */
extern const struct test kTableTests[];   /* c_test_tables.c */
extern const struct test kSessionTests[]; /* c_test_sessions.c */

/* Passes values that follow from `n` to usdtc_test:values, and `n` itself to usdtc_test:numbers. */
void fire(int64_t n);
void count(uint32_t n);
enum { WORDS = 5 };
extern const char* const kWords[WORDS];

extern const char* const kSelf;

struct seen {
  uint32_t next;
  usdtc_event* last;
};
/* Of usdtc_test:numbers, for usdtc_tracer_poll(): each is one more than the one before. */
void see(const usdtc_event* event, void* user);

bool same_text(const char* text, const char* expected);
bool is_text(struct usdtc_text text, const char* expected);
/* The call worked; else says why not. */
bool worked(int result, usdtc_error* error);
/* The call failed with this errno and kind, and a message that has `words`. */
bool failed(int result, usdtc_error* error, int number, uint32_t kind, const char* words);
usdtc_selection* select_own(const char* pattern);
usdtc_plan* plan_options(const char* pattern, struct usdtc_plan_options options);
usdtc_plan* plan_own(const char* pattern, uint32_t texts);
/* Frees the plan. */
usdtc_tracer* trace_plan(usdtc_plan* plan, struct usdtc_trace_options options);
usdtc_tracer* trace_own(const char* pattern, uint32_t texts, struct usdtc_trace_options options);
usdtc_batch* take(usdtc_tracer* tracer, int timeout_ms, size_t limit);
struct usdtc_event_info info_of(const usdtc_event* event);
struct usdtc_value value_of(const usdtc_event* event, size_t n);

/* Numbers of a ledger, by their names. */
struct counts {
  uint64_t hits, delivered, lost, ring_full, discarded, rejected, undecided, table_full, not_sampled, held_back;
};
/* Reads those of a probe; SIZE_MAX: of all together. */
struct counts counts_of(const usdtc_ledger* ledger, size_t probe);
struct counts total_of(const usdtc_tracer* tracer);

#endif
