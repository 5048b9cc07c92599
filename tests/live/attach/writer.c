// SPDX-License-Identifier: BSD-2-Clause
// A process that writes a line a hundred times a second, until it is killed.
#include <unistd.h>

int main(void) {
  while (write(1, "x\n", 2) == 2) usleep(10000);
  return 0;
}
