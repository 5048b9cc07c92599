/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes texts that are hard to read, and says on standard output what each is: one line a hit, `NAME LENGTH HEX`, HEX
 * the bytes as they are in its memory. Each text is on pages of its own, mapped anew from a file just before the hit,
 * so that nobody has touched them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <unistd.h>

enum { PAGE = 4096 };

static int file;

/* `bytes` at `offset` of three pages, of which the last `unmapped` are not there; untouched if `cold`. */
static char* place(const char* bytes, size_t size, size_t offset, int unmapped, int cold) {
  static char pages[3 * PAGE];
  memset(pages, '#', sizeof(pages));
  memcpy(pages + offset, bytes, size);
  if (pwrite(file, pages, sizeof(pages), 0) != (ssize_t)sizeof(pages)) abort();
  char* start = mmap(NULL, sizeof(pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | (cold ? 0 : MAP_POPULATE), file, 0);
  if (start == MAP_FAILED) abort();
  if (unmapped && mprotect(start + (3 - unmapped) * PAGE, unmapped * PAGE, PROT_NONE)) abort();
  return start + offset;
}

static void tell(const char* name, long length, const char* bytes, size_t size) {
  printf("%s %ld ", name, length);
  for (size_t i = 0; i < size; i++) printf("%02x", (unsigned char)bytes[i]);
  printf("\n");
}

__attribute__((noinline)) static void pass(const char* text, long length, int narrow) {
  DTRACE_PROBE3(strings, text, text, length, narrow);
}

/* What Java does: names that are followed by others. */
__attribute__((noinline)) static void method(const char* names, int first, int second, int third) {
  DTRACE_PROBE7(hotspot, method__entry, 4711L, names, first, names + first, second, names + first + second, third);
}

static void show(const char* name, const char* text, long length, const char* bytes, size_t size) {
  pass(text, length, (int)length);
  tell(name, length, bytes, size);
}

int main(void) {
  static const char plain[] = "plain text";
  char path[] = "strings-XXXXXX";
  char many[301];

  file = mkstemp(path);
  if (file < 0) return 1;
  unlink(path);
  memset(many, 'm', sizeof(many) - 1);
  many[sizeof(many) - 1] = 0;
  show("warm", place(plain, sizeof(plain), 100, 0, 0), 5, plain, sizeof(plain));
  show("cold", place(plain, sizeof(plain), 100, 0, 1), 5, plain, sizeof(plain));
  show("cold-across-pages", place(plain, sizeof(plain), PAGE - 5, 0, 1), 10, plain, sizeof(plain));
  show("page-end", place(plain, 10, 3 * PAGE - 10, 0, 0), 10, plain, 10);
  show("page-end-then-nothing", place(plain, 10, 2 * PAGE - 10, 1, 0), 10, plain, 10);
  show("cold-page-end-then-nothing", place(plain, 10, 2 * PAGE - 10, 1, 1), 10, plain, 10);
  show("none", place(plain, 10, PAGE, 0, 0), 0, plain, 0);
  show("negative", place(plain, 10, PAGE, 0, 0), -1, plain, 0);
  show("ends-before", place("ab\0cd", 6, PAGE, 0, 0), 5, "ab\0cd", 6);
  show("many", place(many, sizeof(many), PAGE, 0, 0), 300, many, sizeof(many));
  show("many-cold-across-pages", place(many, sizeof(many), PAGE - 100, 0, 1), 300, many, sizeof(many));
  show("null", NULL, 0, plain, 0);
  show("nowhere", (const char*)16, 4, plain, 0);
  const char* names = place("java/lang/ObjecthashCode()IXXXX", 32, 2 * PAGE - 27, 1, 1);
  method(names, 16, 8, 3);
  tell("method", 0, names, 27);
  return 0;
}
