/* SPDX-License-Identifier: BSD-2-Clause */
/* A user's own probe, made while the program runs: <usdt/provider.h> as it is installed. */
#include <stdio.h>
#include <usdt/provider.h>

int main(void) {
  usdtp_provider* provider;
  usdtp_probe* probe;
  if (usdtp_provider_create("consumer", 0, &provider) || usdtp_probe_add(provider, "number", "i32 number", &probe) ||
      usdtp_provider_publish(provider))
    return 1;
  USDT_PROBE_FIRE(probe, 5);
  usdtp_provider_retire(provider);
  printf("version %u\n", (unsigned)usdtp_version());
  return 0;
}
