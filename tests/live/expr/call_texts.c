// SPDX-License-Identifier: BSD-2-Clause
// Functions that are passed texts, and overwrite, free or replace them before they return. Says what it passed, and
// what it got. usage: call_texts N
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct request {
  const char* path;
  char method[16];
};

static char answers[64];

/// The buffer has another text when it returns; what it returns is a text, too.
__attribute__((noinline)) const char* overwrite(char* text, long n) {
  snprintf(answers, sizeof(answers), "answer %ld of the end", n);
  snprintf(text, 64, "overwritten %ld before the return", n);
  __asm__ volatile("" : : "r"(text) : "memory");
  return answers;
}

/// The memory is another text's, of the same size, when it returns.
__attribute__((noinline)) char* reuse(char* text, long n) {
  free(text);
  char* other = malloc(64);
  snprintf(other, 64, "another text %ld", n);
  return other;
}

/// The bytes have a length, and NULs among them.
__attribute__((noinline)) long counted(char* bytes, long size) {
  memset(bytes, 'x', (size_t)size);
  __asm__ volatile("" : : "r"(bytes) : "memory");
  return size;
}

/// What the pointer leads to is changed, and where it leads.
__attribute__((noinline)) long handle(struct request* request, long n) {
  request->path = "/elsewhere";
  memset(request->method, 'M', sizeof(request->method) - 1);
  __asm__ volatile("" : : "r"(request) : "memory");
  return n;
}

/// There is nothing of worth in the buffer before it returns, which says how much is.
__attribute__((noinline)) long fill(char* to, long n) {
  const long size = snprintf(to, 64, "filled %ld", n);
  to[size] = '!';
  return size;
}

/// There is no memory yet where it points to.
__attribute__((noinline)) long appear(unsigned long where, long n) {
  if (mprotect((void*)where, 4096, PROT_READ | PROT_WRITE) != 0) exit(1);
  snprintf((char*)where, 64, "it appeared %ld", n);
  return n;
}

/// The kernel fills a buffer that had a text: vfs_read().
static void read_over(char* buffer, long n) {
  char file[] = "/tmp/call_texts.XXXXXX";
  const int fd = mkstemp(file);
  unlink(file);
  if (write(fd, "what the file has", 18) != 18 || lseek(fd, 0, SEEK_SET) != 0) exit(1);
  if (read(fd, buffer, 7) != 7) exit(1);
  close(fd);
  printf("read_over asked %ld\n", n);
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 1;
  static char text[64], bytes[64];
  for (long n = 0; n < count; n++) {
    snprintf(text, sizeof(text), "question %ld of the beginning", n);
    printf("overwrite %s\n", text);
    printf("overwritten %s\n", overwrite(text, n));

    char* given = malloc(64);
    snprintf(given, 64, "given %ld", n);
    printf("reuse %s\n", given);
    given = reuse(given, n);
    printf("reused %s\n", given);
    free(given);

    const long size = 8 + snprintf(bytes, sizeof(bytes), "counted%c%ld", 'A' + (int)(n % 26), n) % 8;
    bytes[7] = '\0';
    printf("counted %ld ", size);
    for (long i = 0; i < size; i++) printf("%02x", (unsigned char)bytes[i]);
    printf("\n");
    counted(bytes, size);

    char path[32];
    snprintf(path, sizeof(path), "/path/%ld", n);
    struct request request = {path, "GET"};
    if (n % 2) memcpy(request.method, "a_method_of_16_b", 16);
    printf("handle %s %.16s\n", path, request.method);
    handle(&request, n);

    snprintf(text, sizeof(text), "nothing of worth");
    const long filled = fill(text, n);
    printf("fill %.*s\n", (int)filled, text);

    void* page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    appear((unsigned long)page, n);
    printf("appear %lu %s\n", (unsigned long)page, (char*)page);
    munmap(page, 4096);

    snprintf(text, sizeof(text), "asked %ld", n);
    read_over(text, n);
  }
  return 0;
}
