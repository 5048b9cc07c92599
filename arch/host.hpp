// SPDX-License-Identifier: BSD-2-Clause
// The machine that this code is compiled for, and what its processor can.
#pragma once

#include <string_view>
#include <vector>

#include "usdt/machine.hpp"

namespace usdt::arch {

inline constexpr Machine kHostMachine =
#if defined(__x86_64__)
    Machine::x86_64;
#elif defined(__i386__)
    Machine::i386;
#elif defined(__aarch64__)
    Machine::aarch64;
#elif defined(__riscv) && __riscv_xlen == 64
    Machine::riscv64;
#else
#error "add the machine to usdt/machine.hpp, and its table to arch/"
#endif

/// The directories of glibc-hwcaps whose libraries this processor can run, best first.
[[nodiscard]] std::vector<std::string_view> hwcaps_levels();

}  // namespace usdt::arch
