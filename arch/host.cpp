// SPDX-License-Identifier: BSD-2-Clause
#include "arch/host.hpp"

namespace usdt::arch {

#if defined(__x86_64__)

/// x86-64-v2, -v3, -v4 of the psABI, by the features that tell them apart (glibc, sysdeps/x86/get-isa-level.h).
std::vector<std::string_view> hwcaps_levels() {
  __builtin_cpu_init();
  const bool v2 =
      __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  std::vector<std::string_view> levels;
  if (v4) levels.emplace_back("x86-64-v4");
  if (v3) levels.emplace_back("x86-64-v3");
  if (v2) levels.emplace_back("x86-64-v2");
  return levels;
}

#else

std::vector<std::string_view> hwcaps_levels() { return {}; }

#endif

}  // namespace usdt::arch
