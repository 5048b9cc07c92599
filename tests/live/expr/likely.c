/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that may point to text, one hit each; says on standard output what each is: NAME, and in hex what is there.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <unistd.h>

__attribute__((noinline)) static void hit(uint64_t value) { DTRACE_PROBE2(likely, value, value, (int64_t)value); }

static void show(const char* name, uint64_t value, const void* there, size_t size) {
  printf("%s ", name);
  for (size_t i = 0; i < size; i++) printf("%02x", ((const unsigned char*)there)[i]);
  printf("\n");
  fflush(stdout);
  hit(value);
}

static void text(const char* name, const char* there) { show(name, (uint64_t)(uintptr_t)there, there, strlen(there)); }

static char* page_end(const char* bytes, size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (two == MAP_FAILED || munmap(two + page, page)) abort();
  return memcpy(two + page - size, bytes, size);
}

int main(void) {
  static const uint64_t pointers[] = {0x7f0012345678, 0x7f0087654321};
  char longer[300];
  text("literal", "GET /index.html");
  text("heap", strdup("a word"));
  text("lines", "one\n\ttwo\r\n");
  text("utf8", "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x8d");
  text("four", "four");
  text("three", "abc");
  text("empty", "");
  text("escape", "red \x1b[31m red");
  text("c1", "next\xc2\x85line");
  text("latin1", "na\xefve text");
  text("overlong", "aaaa\xc0\xaf");
  text("half", "caf\xc3");
  text("private", "text \xee\x80\x80");
  memset(longer, 'x', sizeof(longer));
  longer[sizeof(longer) - 1] = 0;
  text("longer", longer);
  for (size_t i = 0; i + 1 < sizeof(longer); i++) longer[i] = "\xc3\xa4"[i % 2 == 0];
  longer[0] = 'x';
  text("longer-odd", longer);
  show("to-pointers", (uint64_t)(uintptr_t)pointers, pointers, 6);
  text("page-end", page_end("last", 5));
  show("nothing-behind", (uint64_t)(uintptr_t)page_end("unterminated", 12), "", 0);
  show("null", 0, "", 0);
  show("small", 70000, "", 0);
  show("nowhere", 0x100000000, "", 0);
  show("kernel", 0xffffffff81000000, "", 0);
  for (int i = 0; i < 1000; i++) hit(0x100000000);
  return 0;
}
