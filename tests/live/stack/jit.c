/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls hit() by way of code that it makes itself, `jit HITS MAP`: with a frame pointer, and named in /tmp/perf-PID.map
 * unless MAP is "none". Waits for a line on standard input before and behind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void hit(void) {
  sink++;
  STAP_PROBE(jit, hit);
  sink++;
}

__attribute__((noinline)) static void caller(void (*made)(void (*)(void))) {
  made(hit);
  sink++;
}

int main(int argc, char** argv) {
  /* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
  static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  unsigned char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char name[64];
  memcpy(page + 64, code, sizeof(code));
  mprotect(page, 4096, PROT_READ | PROT_EXEC);
  snprintf(name, sizeof(name), "/tmp/perf-%d.map", (int)getpid());
  if (argc > 2 && strcmp(argv[2], "none") != 0) {
    FILE* map = fopen(name, "w");
    if (map == NULL) return 1;
    fprintf(map, "not a line of this kind\n%lx %zx LazyCompile:made it.js:3\n", (unsigned long)page + 64, sizeof(code));
    fclose(map);
  }
  printf("%d\n", (int)getpid());
  fflush(stdout);
  getchar();
  for (int i = 0; i < atoi(argv[1]); ++i) caller((void (*)(void (*)(void)))(void*)(page + 64));
  getchar();
  return 0;
}
