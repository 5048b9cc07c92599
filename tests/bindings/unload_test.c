/* SPDX-License-Identifier: BSD-2-Clause */
/* libusdt-c in a program that uses libbpf for itself and unloads us: libbpf has one print function for the whole
 * process, and it has to be the program's own again after each call of ours. unload_test LIBRARY     0: all right, 1:
 * not, 77: skipped */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <usdt/probe.h>
#include <usdt/usdtc.h>

static int failures;
#define CHECK(what)                                                      \
  do {                                                                   \
    if (!(what)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
      ++failures;                                                        \
    }                                                                    \
  } while (0)

__attribute__((noinline)) static void fire(int n) { USDT_PROBE(unload_test, fire, n); }

/* ---- the program's own use of libbpf ----------------------------------------------------------------------------- */

static const char kNowhere[] = "/nowhere/of-the-program";
static atomic_ulong own_messages, foreign_messages;
static atomic_bool over;

static int print_own(enum libbpf_print_level level, const char* format, va_list args) {
  char text[512];
  if (level == LIBBPF_DEBUG) return 0;
  vsnprintf(text, sizeof(text), format, args);
  atomic_fetch_add(strstr(text, kNowhere) ? &own_messages : &foreign_messages, 1);
  return 0;
}

/* libbpf has something to say of each such call: one line. */
static void make_libbpf_speak(void) { (void)bpf_object__open(kNowhere); }

static void* speak_until_over(void* calls) {
  while (!over) {
    make_libbpf_speak();
    ++*(unsigned long*)calls;
  }
  return NULL;
}

/* ---- one life of the library ------------------------------------------------------------------------------------- */

#define FUNCTION(name) __typeof__(&name) p_##name = (__typeof__(&name))dlsym(library, #name)

/* Traces this program and unloads the library; false: it cannot be traced here. */
static bool trace_and_unload(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    ++failures;
    return false;
  }
  FUNCTION(usdtc_select);
  FUNCTION(usdtc_plan_make);
  FUNCTION(usdtc_tracer_start);
  FUNCTION(usdtc_selection_free);
  FUNCTION(usdtc_plan_free);
  FUNCTION(usdtc_tracer_free);
  FUNCTION(usdtc_error_message);
  const char *pattern = "unload_test:fire", *self = "/proc/self/exe";
  const struct usdtc_search search = {
      .size = sizeof(search), .patterns = &pattern, .pattern_count = 1, .targets = &self, .target_count = 1};
  const struct usdtc_plan_options options = {.size = sizeof(options)};
  usdtc_selection* selection = NULL;
  usdtc_plan* plan = NULL;
  usdtc_tracer* tracer = NULL;
  usdtc_error* error = NULL;
  const bool started = p_usdtc_select(&search, &selection, &error) == 0 &&
                       p_usdtc_plan_make(selection, &options, &plan, &error) == 0 &&
                       p_usdtc_tracer_start(plan, NULL, &tracer, &error) == 0;
  if (!started) {
    fprintf(stderr, "%s\n", p_usdtc_error_message(error));
    ++failures;
  }
  fire(1);
  p_usdtc_tracer_free(tracer);
  p_usdtc_plan_free(plan);
  p_usdtc_selection_free(selection);
  dlclose(library);
  return started;
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static void check_libbpf_prints_to_us_again(const char* path) {
  const libbpf_print_fn_t default_print = libbpf_set_print(print_own);
  trace_and_unload(path);
  make_libbpf_speak();
  CHECK(own_messages == 1 && foreign_messages == 0);
  CHECK(libbpf_set_print(NULL) == print_own);

  /* A program that wants libbpf silent, and one that leaves it as it is. */
  trace_and_unload(path);
  CHECK(libbpf_set_print(default_print) == NULL);
  trace_and_unload(path);
  CHECK(libbpf_set_print(default_print) == default_print);
  make_libbpf_speak(); /* to standard error */
}

static void check_other_threads_may_use_libbpf_meanwhile(const char* path) {
  enum { THREADS = 3, LIVES = 10 };
  pthread_t threads[THREADS];
  unsigned long calls[THREADS] = {0}, all = 0;
  libbpf_set_print(print_own);
  own_messages = foreign_messages = 0;
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, speak_until_over, &calls[i]);
  for (int i = 0; i < LIVES; ++i) trace_and_unload(path);
  over = true;
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; ++i) all += calls[i];
  CHECK(all > 100);
  CHECK(own_messages == all);
  CHECK(foreign_messages == 0);
  CHECK(libbpf_set_print(NULL) == print_own);
}

int main(int count, char** words) {
  if (count != 2) return 1;
  if (geteuid() != 0) {
    printf("SKIP: tracing takes root\n");
    return 77;
  }
  check_libbpf_prints_to_us_again(words[1]);
  check_other_threads_may_use_libbpf_meanwhile(words[1]);
  return failures > 0;
}
