// SPDX-License-Identifier: BSD-2-Clause
// Sources the tests compile: with sys/sdt.h of systemtap-sdt-dev, as any user's program.
#pragma once

#include <string_view>

namespace usdt::test {

/// Two probes, one with a semaphore here, one with a semaphore of another object.
inline constexpr std::string_view kLibrarySource = R"(
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
unsigned short prov_with_semaphore __attribute__((section(".probes")));
extern unsigned short prov_elsewhere_semaphore;
int work(int a, long b) {
  STAP_PROBE2(prov, with, a, b);
  if (a > 3) STAP_PROBE1(prov, elsewhere, a);
  return a + (int)b;
}
)";

/// The other semaphore, a probe without one, and main().
inline constexpr std::string_view kMainSource = R"(
#include <sys/sdt.h>
unsigned short prov_elsewhere_semaphore __attribute__((section(".probes")));
int work(int a, long b);
int main(int argc, char** argv) {
  DTRACE_PROBE2(prov, start, argc, argv[0]);
  return work(argc, 7);
}
)";

}  // namespace usdt::test
