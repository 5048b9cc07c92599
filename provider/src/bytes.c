/* SPDX-License-Identifier: BSD-2-Clause */
#include "bytes.h"

#include <stdlib.h>
#include <string.h>

static int make_room(struct usdtp_bytes* bytes, size_t size) {
  if (bytes->failed) return 0;
  if (size <= bytes->room - bytes->size) return 1;
  const size_t room = (bytes->size + size) * 2;
  unsigned char* data = realloc(bytes->data, room);
  if (!data) {
    bytes->failed = 1;
    return 0;
  }
  bytes->data = data;
  bytes->room = room;
  return 1;
}

void usdtp_put(struct usdtp_bytes* bytes, const void* from, size_t size) {
  if (size == 0 || !make_room(bytes, size)) return;
  memcpy(bytes->data + bytes->size, from, size);
  bytes->size += size;
}

void usdtp_put_text(struct usdtp_bytes* bytes, const char* text) { usdtp_put(bytes, text, strlen(text) + 1); }

void usdtp_put_u32(struct usdtp_bytes* bytes, uint32_t value) { usdtp_put(bytes, &value, sizeof value); }

void usdtp_align(struct usdtp_bytes* bytes, size_t to) {
  static const char zeroes[16];
  const size_t over = bytes->size & (to - 1);
  if (over != 0) usdtp_put(bytes, zeroes, to - over);
}
