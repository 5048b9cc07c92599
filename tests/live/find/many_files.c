// SPDX-License-Identifier: BSD-2-Clause
// As many files in memory as the first argument says, with one probe each; then fires each of them for every line that
// is read, and says so.
#include <stdio.h>
#include <stdlib.h>
#include <usdt/provider.h>

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 0;
  usdtp_probe** probes = calloc((size_t)count + 1, sizeof(*probes));
  for (int i = 0; i < count; ++i) {
    char name[32];
    usdtp_provider* provider = NULL;
    snprintf(name, sizeof(name), "many%d", i);
    if (usdtp_provider_create(name, USDTP_CLOSE_FILES, &provider) != 0 ||
        usdtp_probe_add(provider, "hit", "i32 number", &probes[i]) != 0 || usdtp_provider_publish(provider) != 0)
      return 1;
  }
  char line[16];
  do {
    for (int i = 0; i < count; ++i) USDT_PROBE_FIRE(probes[i], i);
    puts("up");
    fflush(stdout);
  } while (fgets(line, sizeof(line), stdin));
}
