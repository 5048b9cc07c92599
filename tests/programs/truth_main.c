/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a generated program's probes: `truth values ROUNDS`, `truth threads ROUNDS`, `truth texts ROUNDS`. */
#include <stdlib.h>
#include <string.h>

void truth_run(unsigned rounds);
void truth_threads(unsigned rounds);
void truth_texts(unsigned rounds);
void truth_open_log(void);

int main(int argc, char** argv) {
  const unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 1;

  truth_open_log();
  if (argc < 2) return 2;
  if (!strcmp(argv[1], "values"))
    truth_run(rounds);
  else if (!strcmp(argv[1], "threads"))
    truth_threads(rounds);
  else if (!strcmp(argv[1], "texts"))
    truth_texts(rounds);
  else
    return 2;
  return 0;
}
