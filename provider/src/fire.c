/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that runs when a probe is fired: no lock, no memory, no errno. */
#include <errno.h>
#include <stdarg.h>

#include "probe.h"

typedef unsigned long long Value;
typedef void Stub(Value, Value, Value, Value, Value, Value, Value, Value, Value, Value, Value, Value);

/* The stub of a probe that is not retired; its code is there for ever. */
static Stub* stub_of(const struct usdtp_slot* slot) { return (Stub*)__atomic_load_n(&slot->stub, __ATOMIC_ACQUIRE); }

/* How many values the probe takes. Asked before stub_of(): once a file is without probes, all of it reads as 0, and who
 * finds a stub then knows that the number was the probe's. */
static unsigned count_of(const struct usdtp_slot* slot) { return __atomic_load_n(&slot->count, __ATOMIC_ACQUIRE); }

/* A stub takes the values that its probe has, wherever its machine passes so many, and lets the others be. */
static void call(Stub* stub, const Value* v) {
  stub(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11]);
}

int usdtp_probe_is_live(const usdtp_probe* probe) { return stub_of((const struct usdtp_slot*)probe) != NULL; }

int usdtp_fire(const usdtp_probe* probe, const uint64_t* values, size_t count) {
  const struct usdtp_slot* slot = (const struct usdtp_slot*)probe;
  const unsigned wanted = count_of(slot);
  Stub* stub = stub_of(slot);
  if (!stub) return 0;
  if (count != wanted) return -EINVAL;
  if (__atomic_load_n(&slot->shown.semaphore, __ATOMIC_RELAXED) == 0) return 0;
  Value all[USDTP_MAX_ARGUMENTS] = {0};
  for (size_t n = 0; n < count; ++n) all[n] = values[n];
  call(stub, all);
  return 0;
}

void usdtp_fire_typed(const usdtp_probe* probe, const uint32_t types[4], ...) {
  const struct usdtp_slot* slot = (const struct usdtp_slot*)probe;
  const unsigned wanted = count_of(slot);
  Stub* stub = stub_of(slot);
  if (!stub || types[0] != wanted) return;
  Value all[USDTP_MAX_ARGUMENTS] = {0};
  va_list values;
  va_start(values, types);
  for (unsigned n = 0; n < types[0]; ++n) {
    const uint8_t type = (uint8_t)(types[1 + n / 4] >> n % 4 * 8);
    all[n] = usdtp_convert(va_arg(values, Value), type, slot->types[n]);
  }
  va_end(values);
  call(stub, all);
}
