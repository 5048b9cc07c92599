/* SPDX-License-Identifier: BSD-2-Clause */
/* `program ROUNDS [LOG]`: every probe so many times; what was passed goes to the file LOG. */
#include <stdio.h>
#include <stdlib.h>

#include "said.h"

static FILE* record;

void said(const char* probe, int count, const long long* values) {
  if (!record) return;
  fprintf(record, "%s", probe);
  for (int i = 0; i < count; i++) fprintf(record, " %lld", values[i]);
  fprintf(record, "\n");
}

void failed(const char* why) {
  fprintf(stderr, "%s\n", why);
  exit(1);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  if (argc > 2 && !(record = fopen(argv[2], "w"))) failed("cannot write the log");
  for (int round = 1; round <= rounds; round++) {
    run_c(round);
    run_cpp(round);
    run_more(round);
  }
  return record && fclose(record) != 0;
}
