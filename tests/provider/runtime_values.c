/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of all types at probes of <usdt/provider.h>, and a record of them: the probe's name and a list in JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime_program.h"
#include "runtime_views.h"

enum colour { red = -1, green = 7 };
enum flags { none = 0, all = 0x80000001U };

static int evaluated;
static int evaluate(int value) {
  ++evaluated;
  return value;
}

/* The limits of every width, in turn. */
static int64_t edge(int round, int bits) {
  const int64_t most = (int64_t)(UINT64_MAX >> (65 - bits));
  const int64_t edges[] = {0, 1, -1, most, -most - 1, most / 3};
  return edges[round % 6];
}

static void integers(FILE* log, usdtp_probe* probe, int round) {
  const int8_t a = (int8_t)edge(round, 8);
  const uint8_t b = (uint8_t)edge(round, 8);
  const int16_t c = (int16_t)edge(round, 16);
  const uint16_t d = (uint16_t)edge(round, 16);
  const int32_t e = (int32_t)edge(round, 32);
  const uint32_t f = (uint32_t)edge(round, 32);
  const int64_t g = edge(round, 64);
  const uint64_t h = (uint64_t)edge(round, 64);
  USDT_PROBE_FIRE(probe, a, b, c, d, e, f, g, h);
  fprintf(log, "integers [%d, %u, %d, %u, %" PRId32 ", %" PRIu32 ", %" PRId64 ", %" PRIu64 "]\n", a, b, c, d, e, f, g,
          h);
}

static void others(FILE* log, usdtp_probe* probe, int round) {
  const _Bool truth = round % 2;
  const float single = (float)round / 4 - 1;
  const double twice = round * 1e100;
  const char words[] = "w\xc3\xb6rter";
  const char* part = "within a longer one";
  const size_t size = (size_t)round % 9;
  USDT_PROBE_FIRE(probe, truth, single, twice, &log, words, part, size);
  fprintf(log, "others [%s, %.9g, %.17g, %" PRIuPTR ", \"w\xc3\xb6rter\", ", truth ? "true" : "false", (double)single,
          twice, (uintptr_t)&log);
  fprintf(log, "\"%.*s\", %zu]\n", (int)size, part, size);
}

/* What an assignment in C makes of it. */
static void converted(FILE* log, usdtp_probe* probe, int round) {
  const int value = (int)edge(round, 32) / 2;
  USDT_PROBE_FIRE(probe, value, 70000L * round, round / 8.0, (float)round / 8, value, round * -1.75, (char)round, value,
                  round % 2 ? red : green, all);
  fprintf(log, "converted [%d, %d, %.9g, %.9g, %d, %d, %d, %s, %d, %u]\n", value, (int16_t)(70000L * round),
          round / 8.0, round / 8.0, value, (int)(round * -1.75), (char)round, value ? "true" : "false",
          round % 2 ? -1 : 7, (unsigned)all);
}

static void twelve(FILE* log, usdtp_probe* probe, uint64_t x) {
  USDT_PROBE_FIRE(probe, x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7, x + 8, x + 9, x + 10, x + 11);
  fprintf(log, "twelve [%" PRIu64, x);
  for (unsigned i = 1; i < 12; ++i) fprintf(log, ", %" PRIu64, x + i);
  fprintf(log, "]\n");
}

/* As a binding does, which has its values in an array. */
static void raw(FILE* log, usdtp_probe* probe, int round) {
  const double number = round + 0.5;
  uint64_t values[3] = {(uint64_t)(int64_t)-round, 0, (uintptr_t) "a text"};
  memcpy(&values[1], &number, sizeof number);
  must(usdtp_fire(probe, values, 3), "fire");
  fprintf(log, "raw [%d, %.9g, \"a text\"]\n", -round, number);
}

int run_values(int rounds, const char* path) {
  usdtp_provider* provider = provider_of("typed");
  usdtp_probe* of_integers = probe_of(provider, "integers", "i8 a, u8 b, i16 c, u16 d, i32 e, u32 f, i64 g, u64 h");
  usdtp_probe* of_others =
      probe_of(provider, "others", "bool truth, f32 single, f64 twice, ptr address, str words, text part");
  usdtp_probe* of_converted = probe_of(
      provider, "converted",
      "i64 wide, i16 cut, f32 halved, f64 doubled, f64 number, i32 whole, i8 letter, bool any, i32 colour, u32 flags");
  usdtp_probe* of_twelve = probe_of(
      provider, "twelve", "u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h, u64 i, u64 j, u64 k, u64 l");
  usdtp_probe* of_raw = probe_of(provider, "raw", "i32 a, f64 b, str c");
  usdtp_probe* nothing = probe_of(provider, "nothing", "");
  usdtp_probe* lazy = probe_of(provider, "lazy", "i32 value:duration[us]");
  make_views(provider);
  must(usdtp_provider_publish(provider), "publish");
  FILE* log = fopen(path, "w");
  if (!log) return 7;
  USDT_PROBE_FIRE(lazy, evaluate(1));
  if (evaluated != 0 || usdtp_probe_traced(lazy)) return 8;
  ready();
  for (int round = 0; round < rounds; ++round) {
    integers(log, of_integers, round);
    others(log, of_others, round);
    converted(log, of_converted, round);
    twelve(log, of_twelve, (uint64_t)round << 60);
    raw(log, of_raw, round);
    USDT_PROBE_FIRE(nothing);
    fprintf(log, "nothing []\n");
    USDT_PROBE_FIRE(lazy, evaluate(round));
    fprintf(log, "lazy [%d]\n", round);
    fire_views(log, round);
  }
  return fclose(log) != 0;
}
