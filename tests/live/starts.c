// SPDX-License-Identifier: BSD-2-Clause
// Starts itself N times, one after the other, and each passes a probe with the same stack: at addresses of its own.
// usage: starts N
#include <spawn.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <sys/wait.h>

extern char** environ;

__attribute__((noinline)) static int passes(void) {
  DTRACE_PROBE(starts, here);
  return 0;
}

int main(int count, char** words) {
  if (count < 2) return passes();
  char* again[] = {words[0], NULL};
  for (long i = atol(words[1]); i > 0; i--) {
    pid_t pid;
    if (posix_spawn(&pid, words[0], NULL, NULL, again, environ) == 0) waitpid(pid, NULL, 0);
  }
  return 0;
}
