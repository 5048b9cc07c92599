// SPDX-License-Identifier: BSD-2-Clause
// Maps N files of a directory, named by numbers, as code, and calls getppid() 300 times by code of its own whose frame
// says that it was called from where nothing is. Each line that is read lets it go on.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const unsigned char kCode[] = {
    0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x40,        // a frame: push %rbp; mov %rsp,%rbp; sub $0x40,%rsp
    0x48, 0xc7, 0x44, 0x24, 0x28, 0x00, 0x10, 0xad, 0x0d,  // movq $0xdad1000,0x28(%rsp): the address in no mapping
    0x48, 0x89, 0x6c, 0x24, 0x20,                          // mov %rbp,0x20(%rsp): the frame that called from there
    0x48, 0x8d, 0x6c, 0x24, 0x20,                          // lea 0x20(%rsp),%rbp
    0xff, 0xd7,                                            // call *%rdi
    0x48, 0x8b, 0x6d, 0x00, 0xc9, 0xc3,                    // mov 0(%rbp),%rbp; leave; ret
};

int main(int argc, char** argv) {
  if (argc != 3 || chdir(argv[1]) != 0) return 2;
  for (int n = 0; n < atoi(argv[2]); n++) {
    char name[16];
    snprintf(name, sizeof(name), "%d", n);
    const int file = open(name, O_RDONLY);
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) return 1;
    close(file);
  }
  unsigned char* const code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  memcpy(code, kCode, sizeof(kCode));
  puts("ready");
  fflush(stdout);
  char line[16];
  if (fgets(line, sizeof(line), stdin) == NULL) return 1;
  for (int n = 0; n < 300; n++) {
    ((void (*)(pid_t(*)(void)))code)(getppid);
    usleep(3000);
  }
  return fgets(line, sizeof(line), stdin) == NULL;
}
