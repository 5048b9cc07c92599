/* SPDX-License-Identifier: BSD-2-Clause */
/* Every type that C passes to a probe, in each form. No headers but those of a freestanding compiler: arm64 builds
 * have none. said() is the program's own record of what it passed. */
#include <stddef.h>
#include <stdint.h>
#include <usdt/probe.h>

#include "said.h"

enum colour { RED = -1, GREEN = 7 };
enum flags { NONE, ALL = 0xffffffff };
struct request {
  const char* text;
  int rows : 5;
};

static long long bits_of(double number) {
  long long bits;
  __builtin_memcpy(&bits, &number, sizeof bits);
  return bits;
}

static long long bits_of_float(float number) {
  unsigned bits;
  __builtin_memcpy(&bits, &number, sizeof bits);
  return bits;
}

int counter = 41;
static double ratio = 0.25;

NOINLINE void integers(int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint32_t f, int64_t g, uint64_t h) {
  USDT_PROBE(c, integers, a, b, c, d, e, f, g, h);
  SAID("integers", a, b, c, d, e, f, g, (long long)h);
  USDT_PROBE_LAZY(c, lazy_integers, a, b, c, d, e, f, g, h);
  USDT_PROBE_STUB(c, stub_integers, a, b, c, d, e, f, g, h);
  if (USDT_PROBE_ENABLED(c, lazy_integers)) SAID("lazy_integers", a, b, c, d, e, f, g, (long long)h);
  if (USDT_PROBE_ENABLED(c, stub_integers)) SAID("stub_integers", a, b, c, d, e, f, g, (long long)h);
}

NOINLINE void others(_Bool truth, char letter, float single, double twice, enum colour colour, enum flags flags,
                     const char* text, void* pointer) {
  USDT_PROBE(c, others, truth, letter, single, twice, colour, flags, text, pointer);
  SAID("others", truth, letter, bits_of_float(single), bits_of(twice), colour, flags, (long long)(uintptr_t)text,
       (long long)(uintptr_t)pointer);
  USDT_PROBE_STUB(c, stub_others, truth, letter, single, twice, colour, flags, text, pointer);
  if (USDT_PROBE_ENABLED(c, stub_others))
    SAID("stub_others", truth, letter, bits_of_float(single), bits_of(twice), colour, flags, (long long)(uintptr_t)text,
         (long long)(uintptr_t)pointer);
}

/* What a compiler would gladly write as `-4@counter(%rip)`. */
NOINLINE void named(void) {
  char array[4] = "abc";
  USDT_PROBE(c, named, counter, &counter, ratio, array[1], "literal" != NULL, -5, 5000000000LL);
  SAID("named", counter, (long long)(uintptr_t)&counter, bits_of(ratio), 'b', 1, -5, 5000000000LL);
  counter++;
}

NOINLINE void twelve(int a, int64_t b) {
  USDT_PROBE(c, twelve, a, b, a + 1, b + 1, a + 2, b + 2, a + 3, b + 3, a + 4, b + 4, a + 5, b + 5);
  SAID("twelve", a, b, a + 1, b + 1, a + 2, b + 2, a + 3, b + 3, a + 4, b + 4, a + 5, b + 5);
  USDT_PROBE_STUB(c, stub_twelve, a, b, a + 1, b + 1, a + 2, b + 2, a + 3, b + 3, a + 4, b + 4, a + 5, b + 5);
  if (USDT_PROBE_ENABLED(c, stub_twelve))
    SAID("stub_twelve", a, b, a + 1, b + 1, a + 2, b + 2, a + 3, b + 3, a + 4, b + 4, a + 5, b + 5);
}

static int evaluations;
static int evaluate(int value) {
  evaluations++;
  return value;
}

/* Arguments of a probe that nobody traces are not evaluated; of one that somebody does, once. */
NOINLINE void lazily(int round) {
  const int before = evaluations;
  USDT_PROBE_LAZY(c, lazily, evaluate(round));
  USDT_PROBE_STUB(c, stub_lazily, evaluate(round));
  const int expected = USDT_PROBE_ENABLED(c, lazily) + USDT_PROBE_ENABLED(c, stub_lazily);
  if (evaluations - before != expected) failed("arguments were evaluated while nobody traced, or twice");
  if (USDT_PROBE_ENABLED(c, lazily)) SAID("lazily", round);
  if (USDT_PROBE_ENABLED(c, stub_lazily)) SAID("stub_lazily", round);
}

NOINLINE void none(void) {
  USDT_PROBE(c, none);
  SAID("none", 0);
  USDT_PROBE_STUB(c, stub_none);
  if (USDT_PROBE_ENABLED(c, stub_none)) SAID("stub_none", 0);
}

/* Alike but for their probes: a linker that folds identical code must keep them apart. */
NOINLINE void twin_one(int value) { USDT_PROBE(c, twin_one, value); }
NOINLINE void twin_two(int value) { USDT_PROBE(c, twin_two, value); }
NOINLINE void stub_twins(int value) {
  USDT_PROBE_STUB(c, stub_twin_one, value);
  USDT_PROBE_STUB(c, stub_twin_two, value);
}

/* Nobody calls it: --gc-sections drops it, and its notes with it. */
NOINLINE void dead(int value) {
  USDT_PROBE(c, dead, value);
  USDT_PROBE_STUB(c, dead_stub, value);
}

/* Three places of one probe that share a stub, and one with another type that has its own. */
NOINLINE void places(int value) {
  USDT_PROBE_STUB(c, places, value);
  USDT_PROBE_STUB(c, places, value + 1);
  USDT_PROBE_STUB(c, places, value + 2);
  USDT_PROBE_STUB(c, places, (short)value);
  if (!USDT_PROBE_ENABLED(c, places)) return;
  SAID("places", value);
  SAID("places", value + 1);
  SAID("places", value + 2);
  SAID("places", (short)value);
}

NOINLINE void field(struct request* request) {
  USDT_PROBE(c, field, request->text, (int)request->rows);
  SAID("field", (long long)(uintptr_t)request->text, request->rows);
}

void run_c(int round) {
  const unsigned long long wide = (unsigned long long)round * 0x123456789abcdefULL;
  struct request request = {"text", -3};
  integers((int8_t)-round, (uint8_t)(200 + round), (int16_t) - (300 + round), (uint16_t)(65000 + round),
           -100000 - round, 4000000000U + (uint32_t)round, -(int64_t)wide, ~wide);
  others(round & 1, (char)('a' + round % 26), (float)round / 3, round / 7.0, round % 2 ? RED : GREEN,
         round % 2 ? NONE : ALL, "some text", &request);
  named();
  twelve(-round, (int64_t)wide);
  lazily(round);
  none();
  twin_one(round);
  twin_two(round);
  SAID("twin_one", round);
  SAID("twin_two", round);
  stub_twins(round);
  places(round);
  field(&request);
}
