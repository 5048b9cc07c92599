/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls the library N times and exits with 0 if each result is right; without N, once for each line of standard input,
 * answering each. */
#include <stdio.h>
#include <stdlib.h>

long shared_code(long n);

int main(int argc, char** argv) {
  char line[64];

  for (long i = 0; argc > 1 && i < atol(argv[1]); i++)
    if (shared_code(i) != i + 4000) return 1;
  for (long i = 0; argc == 1 && fgets(line, sizeof(line), stdin); i++) {
    printf("%ld\n", shared_code(i));
    fflush(stdout);
  }
  return 0;
}
