/* SPDX-License-Identifier: BSD-2-Clause */
/* `many_maps FILE N`: maps a page of FILE as code N times, no two side by side, and hits its probe three times. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) void hit(void);
void hit(void) {
  sink++;
  STAP_PROBE(many, hit);
  sink++;
}

int main(int argc, char** argv) {
  const int fd = open(argv[1], O_RDONLY);
  const int count = atoi(argv[2]);
  char* room = mmap(NULL, 2ul * 4096 * (unsigned)count, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (argc < 3 || fd < 0 || room == MAP_FAILED) return 1;
  for (int i = 0; i < count; i += 2)
    if (mmap(room + 2ul * 4096 * (unsigned)i, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
        MAP_FAILED)
      return 2;
  for (int i = 0; i < 3; ++i) {
    hit();
    sink++;
  }
  usleep(3000000); /* while it is looked at */
  return 0;
}
