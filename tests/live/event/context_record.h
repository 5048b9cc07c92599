// SPDX-License-Identifier: BSD-2-Clause
// The record of OTEP 4947 as programs of tests fill it, and the log of what they had published at their hits.
#ifndef CONTEXT_RECORD_H
#define CONTEXT_RECORD_H

#include <stdint.h>
#include <stdio.h>

struct record {
  uint8_t trace_id[16];
  uint8_t span_id[8];
  uint8_t valid, flags;
  uint16_t size;
  uint8_t attributes[64];
} __attribute__((packed));

static void put(uint8_t* to, uint64_t number) {
  for (int i = 7; i >= 0; i--, number >>= 8) to[i] = (uint8_t)number;
}

// Makes the thread publish what it has at hit `n`: two numbers, or none, or a record that is half of this hit and half
// of the one before, and says so.
static void publish(struct record* volatile* context, struct record* record, long n, long thread) {
  const int is_changing = n % 11 == 5;
  *context = NULL;
  record->valid = !is_changing;
  record->flags = 1;
  put(record->trace_id, (uint64_t)n);
  if (!is_changing) {
    put(record->trace_id + 8, (uint64_t)thread);
    put(record->span_id, 2 * (uint64_t)n + 1);
  }
  if (n % 7 != 3) *context = record;
}

static void log_bytes(FILE* log, const uint8_t* bytes, int count) {
  for (int i = 0; i < count; i++) fprintf(log, "%02x", bytes[i]);
}

// Logs the numbers that a hit has, and what is published at it: both ids, or a word. `waits` is how often the thread
// has been made to wait before.
static void log_hit(FILE* log, long n, long thread, const struct record* published, int waits) {
  fprintf(log, "%ld %ld %d ", n, thread, waits);
  if (!published) {
    fputs("none", log);
  } else if (!published->valid) {
    fputs("changing", log);
  } else {
    log_bytes(log, published->trace_id, 16);
    fputc(' ', log);
    log_bytes(log, published->span_id, 8);
  }
  fputc('\n', log);
}

#endif  // CONTEXT_RECORD_H
