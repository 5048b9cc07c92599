// SPDX-License-Identifier: BSD-2-Clause
// A thread whose context has attributes (OTEP 4947), which it tells a probe, too. What they are called in the process
// (OTEP 4719) is whatever it is told: each line that is read is one of these.
//   publish HEX    a message, published as the specification has it
//   message HEX    the bytes of the message alone are others now
//   header HEX     the header alone has these bytes
//   work COUNT     hits with what the line says
//   raw SIZE HEX   a hit with these bytes in the place of attributes, of which there are said to be so many
//   fork           a child does what the lines say from then on
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct record {
  uint8_t trace_id[16], span_id[8], valid, flags;
  uint16_t size;
  uint8_t attributes[65536];
} __attribute__((packed));
__thread struct record* volatile otel_thread_ctx_v1;

struct header {
  char signature[8];
  uint32_t version, size;
  uint64_t published_at, message;
};
static struct header* page;

static size_t bytes_of(const char* digits, uint8_t* to) {
  size_t size = 0;
  unsigned byte;
  for (; sscanf(digits, "%2x", &byte) == 1; digits += 2) to[size++] = (uint8_t)byte;
  return size;
}

static void make_page(void) {
  const int file = memfd_create("OTEL_CTX", MFD_CLOEXEC);
  if (page || file < 0 || ftruncate(file, 4096) != 0) return;
  page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  close(file);
  madvise(page, 4096, MADV_DONTFORK);
}

static void publish(const char* digits) {
  static uint8_t* last;
  struct timespec now;
  make_page();
  page->published_at = 0;
  last = malloc(strlen(digits) / 2 + 1);  // a reader may be at the one before
  memcpy(page->signature, "OTEL_CTX", 8);
  page->version = 2;
  page->size = (uint32_t)bytes_of(digits, last);
  page->message = (uint64_t)(uintptr_t)last;
  clock_gettime(CLOCK_BOOTTIME, &now);
  __atomic_store_n(&page->published_at, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, __ATOMIC_SEQ_CST);
}

static struct record record = {.trace_id = {1}, .span_id = {2}, .valid = 1};

static void add(uint8_t key, const char* text) {
  uint8_t* const to = record.attributes + record.size;
  to[0] = key;
  to[1] = (uint8_t)strlen(text);
  memcpy(to + 2, text, strlen(text));
  record.size = (uint16_t)(record.size + 2 + strlen(text));
}

// Hits with both attributes, one of them twice, one of them or none; of some the thread is in the middle of a change.
static void work(long count) {
  static long n;
  for (const long last = n + count; n < last; n++) {
    char route[32] = "", user[32] = "";
    record.size = 0;
    if (n % 4 != 2) snprintf(user, sizeof(user), "user-%ld", n);
    if (n % 4 != 1 && n % 4 != 2) snprintf(route, sizeof(route), "/r/%ld\xc3\xa4", n % 10);
    if (n % 4 == 3) add(0, "not this one");
    if (user[0]) add(1, user);
    if (route[0]) add(0, route);
    record.valid = n % 9 != 4;
    otel_thread_ctx_v1 = &record;
    DTRACE_PROBE3(PROVIDER, works, n, route, user);
    otel_thread_ctx_v1 = NULL;
  }
}

static void hit_with(const char* line) {
  char* digits;
  record.size = (uint16_t)strtol(line, &digits, 10);
  memset(record.attributes, 0xff, sizeof(record.attributes));
  while (*digits == ' ') digits++;
  bytes_of(digits, record.attributes);
  record.valid = 1;
  otel_thread_ctx_v1 = &record;
  DTRACE_PROBE3(PROVIDER, works, record.size, "", "");
  otel_thread_ctx_v1 = NULL;
}

int main(void) {
  char* line = NULL;
  size_t room = 0;
  puts("ready");
  fflush(stdout);
  while (getline(&line, &room, stdin) > 0) {
    char* const rest = strchr(line, ' ') ? strchr(line, ' ') + 1 : line;
    if (line[0] == 'p') publish(rest);
    if (line[0] == 'm') bytes_of(rest, (uint8_t*)(uintptr_t)page->message);
    if (line[0] == 'h') make_page(), bytes_of(rest, (uint8_t*)page);
    if (line[0] == 'w') work(atol(rest));
    if (line[0] == 'r') hit_with(rest);
    if (line[0] == 'f') {
      int status;
      if (fork() > 0) {
        page = NULL;
        wait(&status);
        return 0;
      }
      page = NULL;
      setvbuf(stdin, NULL, _IONBF, 0);
    }
    puts("done");
    fflush(stdout);
  }
}
