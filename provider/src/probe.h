/* SPDX-License-Identifier: BSD-2-Clause */
/* A probe as it lies in its file's data; never freed, so that whoever holds it may fire it for ever. */
#ifndef USDT_PROVIDER_PROBE_H
#define USDT_PROVIDER_PROBE_H

#include "image.h"

struct usdtp_record;

struct usdtp_slot {
  usdtp_probe shown;
  uint8_t count;
  uint8_t types[USDTP_MAX_ARGUMENTS];
  void* stub;                  /* atomic; NULL: retired, or never a probe */
  struct usdtp_record* record; /* under the lock; NULL: retired */
};
_Static_assert(sizeof(struct usdtp_slot) <= USDTP_PROBE_SIZE, "a probe has its room");

#endif
