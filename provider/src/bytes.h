/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that are put one behind the other. */
#ifndef USDT_PROVIDER_BYTES_H
#define USDT_PROVIDER_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct usdtp_bytes {
  unsigned char* data; /* free() it */
  size_t size;
  size_t room;
  int failed; /* there was no memory: what was put since is not there */
};

void usdtp_put(struct usdtp_bytes* bytes, const void* from, size_t size);
void usdtp_put_text(struct usdtp_bytes* bytes, const char* text); /* with its NUL */
void usdtp_put_u32(struct usdtp_bytes* bytes, uint32_t value);
void usdtp_align(struct usdtp_bytes* bytes, size_t to); /* zeroes up to a multiple of `to`, a power of two */

#endif
