/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes (USDT) that a program makes while it runs: for interpreters, plugins and bindings of other languages, which
 * learn the names of their probes too late for <usdt/probe.h>. C11 and C++20; libusdt-provider, which needs libc alone.
 *
 *   usdtp_provider* provider;
 *   usdtp_probe* query;
 *   usdtp_provider_create("db", 0, &provider);
 *   usdtp_probe_add(provider, "query", "str sql, u32 rows, i64 took:duration[us]", &query);
 *   usdtp_provider_publish(provider);                      From here on tools see it, by the pid of this process.
 *   USDT_PROBE_FIRE(query, sql, rows, microseconds());     While nobody traces it: one load and one branch.
 *
 * The probes are those of an ELF file in memory that is mapped executable, with stapsdt notes and notes of our own
 * (docs/provider-note.md), so that every tool that reads notes by pid finds them: docs/runtime-probes.md.
 *
 * Threads: every function may be called by any thread at any time, with one exception: no other function may be using a
 * provider while, or after, usdtp_provider_retire() is given it. USDT_PROBE_FIRE, usdtp_fire(), usdtp_fire_typed() and
 * usdtp_probe_traced() take no lock, do not change errno, and may be called from signal handlers; the others may not.
 *
 * fork: the child has all probes of its parent, under its own pid. What either adds or retires later is its own affair.
 *
 * Errors are values of errno.h, negated. Nothing is printed.
 *
 * USDT_PROBE_DISABLE, defined before the include, compiles every USDT_PROBE_FIRE out.
 */
#ifndef USDT_PROVIDER_H
#define USDT_PROVIDER_H

#include <stddef.h>
#include <stdint.h>
#include <usdt/probe.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The version of this interface. Within a major version, functions are added and none is changed. */
#define USDTP_API_MAJOR 1
#define USDTP_API_MINOR 0

/* The most arguments of a probe; `text` and `bytes` are two each. */
#define USDTP_MAX_ARGUMENTS 12

/* Probes of one provider, "db" of db:query. */
typedef struct usdtp_provider usdtp_provider;

/*
 * A probe. It is never freed: firing it is harmless for as long as the process lives, retired or not. What is shown of
 * it here is what USDT_PROBE_FIRE reads; everything else is the library's own.
 */
typedef struct usdtp_probe {
  uint16_t semaphore; /* how many trace it; the kernel and tracers write it */
} usdtp_probe;

/* Flags of usdtp_provider_create(). */
enum {
  /*
   * Keeps no file descriptor. Run by root, usdt-list and usdt-trace need none (they open /proc/PID/map_files). Run by
   * others they find the probes by their descriptor only, as bpftrace and bcc do.
   */
  USDTP_CLOSE_FILES = 1
};

/* The version of the library that runs: USDTP_API_MAJOR << 16 | USDTP_API_MINOR of its header. */
uint32_t usdtp_version(void);

/*
 * Makes a provider without probes. `name`: 1 to 127 letters, digits, '_', '-' and '.', the first one a letter or '_';
 * what tools do with other names differs. Several providers may have one name.
 * Returns 0; -EINVAL for such a name or an unknown flag; -ENOMEM. `*provider` is NULL where it fails.
 */
int usdtp_provider_create(const char* name, unsigned flags, usdtp_provider** provider);

/*
 * Adds a probe, which tools see after the next usdtp_provider_publish(). `name`: as of providers. `arguments` declares
 * its arguments, "" for none:
 *
 *   [ argument { "," argument } ]      argument = type name [ ":" meaning ] [ "[" unit "]" ]
 *
 *   type   i8 i16 i32 i64 u8 u16 u32 u64 bool f32 f64
 *          ptr      an address
 *          str      the address of characters up to a NUL
 *          text     the address of characters, and how many there are: two arguments, `name` and `name_size`
 *          bytes    likewise, of other bytes
 *   name   an identifier; each once
 *   meaning and unit   words that tools format by, as `duration[us]`, `errno`, `bits` (docs/provider-note.md); or in
 *                      place of a meaning the names that numbers have: `{0=idle, 1=busy}`
 *
 * Returns 0; -EINVAL for a bad name or declaration; -E2BIG for more than 12 arguments; -EEXIST if the provider has such
 * a probe that is not retired; -ENOMEM; and where the system lets no memory of a file be executed (neither of a memfd
 * nor of a file in $TMPDIR, /dev/shm, /tmp or /var/tmp) or has no room for it, what it said last: -EACCES, -EPERM,
 * -ENOSYS, -EMFILE, -ENOSPC, -EFBIG.
 * `*probe` can be fired in every case: where the call fails, that does nothing, ever.
 */
int usdtp_probe_add(usdtp_provider* provider, const char* name, const char* arguments, usdtp_probe** probe);

/*
 * Shows tools all probes that were added since the last call, in a file of their own. Nothing to show is no error.
 * This library's own probe usdtp:published tells tracers: the provider's name, how many probes are new, where their
 * file is mapped. Returns 0; -ENOMEM, -ENOSPC, -EFBIG (RLIMIT_FSIZE): a later call tries again.
 */
int usdtp_provider_publish(usdtp_provider* provider);

/*
 * Ends a probe: firing it does nothing from here on, also while it is traced. Another thread that is in the middle of
 * firing it ends that safely, and may be traced doing so. The name is free for another probe. Tools list it until all
 * probes that were published with it are retired, too. A second time is as once.
 */
void usdtp_probe_retire(usdtp_probe* probe);

/* Retires all probes of a provider and frees it; NULL is no provider, and nothing happens. */
void usdtp_provider_retire(usdtp_provider* provider);

/* 1 from when the probe was added until it is retired, traced or not; 0 for one that could not be added. */
int usdtp_probe_is_live(const usdtp_probe* probe);

/*
 * Fires a probe with values as it declares them, for callers that know types at run time only: bindings, interpreters.
 * Each value is one of 64 bits: integers with their sign or zeroes above, f32 and f64 their bits (those of f32 in the
 * lower half), addresses, sizes. Returns 0, also where nobody traces it; -EINVAL if the probe has not `count`
 * arguments.
 */
int usdtp_fire(const usdtp_probe* probe, const uint64_t* values, size_t count);

/*
 * What USDT_PROBE_FIRE calls while somebody traces the probe. `types` are how many arguments follow, then their types,
 * four to a word, from the lowest byte on (enum usdtp_type of <usdt/probe.h>). Each argument is an unsigned long long
 * that has the value in its lower bytes. They become those that are declared as by an assignment in C, where a number
 * without a place in the declared type has an unspecified value. With another number of arguments than is declared
 * nothing is fired.
 */
__attribute__((cold)) void usdtp_fire_typed(const usdtp_probe* probe, const uint32_t types[4], ...);

/*
 * 1 while somebody traces the probe, 0 else and once it is retired: a guard for work that only a tracer wants. One load
 * and one branch while nobody does.
 */
static inline int usdtp_probe_traced(const usdtp_probe* probe) {
  return __builtin_expect(__atomic_load_n(&probe->semaphore, __ATOMIC_RELAXED) != 0, 0) && usdtp_probe_is_live(probe);
}

/*
 * The trace and span that the calling thread works for, for tracers (docs/trace-context.md): what
 * <usdt/trace_context.h> does, for callers that cannot include it. A program has one variable of threads, whoever of
 * its parts sets it: its own comes first, then that of the library that was loaded first. These are about the calling
 * thread and may not be called from signal handlers; usdtp_context_publish() is called by one thread at a time.
 */

/* The thread works for this span, without attributes. An id of zeros is none. `flags`: 1, the trace is sampled. */
void usdtp_context_set(const uint8_t trace_id[16], const uint8_t span_id[8], unsigned flags);

/*
 * Adds an attribute to what was set: `key` is the place of its name among those that were published. Returns 0; -EINVAL
 * (nothing is set by this, or more than 255 bytes); -ENOSPC.
 */
int usdtp_context_add(unsigned key, const char* text, size_t size);

/* The thread works for no trace. */
void usdtp_context_clear(void);

/*
 * Publishes what is true of all threads: the service's name (NULL: none), and the names of attributes, at most 256.
 * Again: names are added behind those that were published before, and none is taken away. After a fork the child
 * publishes for itself. Returns 0; -EINVAL; -ENOMEM.
 */
int usdtp_context_publish(const char* service, const char* const* names, size_t count);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

/*
 * USDT_PROBE_FIRE(probe, arguments...)   Fires a probe. While nobody traces it, nothing is evaluated but `probe`.
 *
 * Arguments are what <usdt/probe.h> takes: integers, bool, enums, float, double, pointers; in C++ whatever has data()
 * and size(), for `text` and `bytes`, which are an address and a size in C. They become what is declared as by an
 * assignment. If there are not as many as are declared, nothing is fired (usdtp_fire() says so).
 */
#ifdef USDT_PROBE_DISABLE
#define USDT_PROBE_FIRE(probe, ...)             \
  do {                                          \
    if (0) {                                    \
      const usdtp_probe* usdtp_fired = (probe); \
      (void)usdtp_fired;                        \
    }                                           \
    USDTP_NOTHING(__VA_ARGS__);                 \
  } while (0)
#else
#define USDT_PROBE_FIRE(probe, ...)                                                           \
  do {                                                                                        \
    const usdtp_probe* const usdtp_fired = (probe);                                           \
    if (__builtin_expect(__atomic_load_n(&usdtp_fired->semaphore, __ATOMIC_RELAXED) != 0, 0)) \
      USDTP_RUN_N(USDTP_COUNT(__VA_ARGS__), USDTP_EMIT_FIRE, usdtp_fired, (__VA_ARGS__));     \
  } while (0)
#define USDTP_EMIT_FIRE(n, fired)                                                                      \
  static const uint32_t usdtp_types[4] = {n, USDTP_CODES(n, 0), USDTP_CODES(n, 1), USDTP_CODES(n, 2)}; \
  usdtp_fire_typed(fired, usdtp_types USDTP_FIRED_##n);
#define USDTP_FIRED_0
#define USDTP_FIRED_1 USDTP_FIRED_0, (usdtp_slot)usdtp_w1
#define USDTP_FIRED_2 USDTP_FIRED_1, (usdtp_slot)usdtp_w2
#define USDTP_FIRED_3 USDTP_FIRED_2, (usdtp_slot)usdtp_w3
#define USDTP_FIRED_4 USDTP_FIRED_3, (usdtp_slot)usdtp_w4
#define USDTP_FIRED_5 USDTP_FIRED_4, (usdtp_slot)usdtp_w5
#define USDTP_FIRED_6 USDTP_FIRED_5, (usdtp_slot)usdtp_w6
#define USDTP_FIRED_7 USDTP_FIRED_6, (usdtp_slot)usdtp_w7
#define USDTP_FIRED_8 USDTP_FIRED_7, (usdtp_slot)usdtp_w8
#define USDTP_FIRED_9 USDTP_FIRED_8, (usdtp_slot)usdtp_w9
#define USDTP_FIRED_10 USDTP_FIRED_9, (usdtp_slot)usdtp_w10
#define USDTP_FIRED_11 USDTP_FIRED_10, (usdtp_slot)usdtp_w11
#define USDTP_FIRED_12 USDTP_FIRED_11, (usdtp_slot)usdtp_w12
#define USDTP_FIRED_MANY
#endif

#endif /* USDT_PROVIDER_H */
