/* SPDX-License-Identifier: BSD-2-Clause */
/* Says that it runs, then waits to be killed: a process to look at. */
#include <unistd.h>

int main(void) {
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  for (;;) pause();
}
