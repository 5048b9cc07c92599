// SPDX-License-Identifier: BSD-2-Clause
// The one place that says which instructions a machine has. Private to arch/.
#pragma once

#include "usdt/machine.hpp"

namespace usdt::arch {

/// Calls what reads the instructions of `machine`: `x86(is64)`, `arm64()` or `riscv64()`.
template <class X86, class Arm64, class Riscv64>
auto by_instructions(Machine machine, X86&& x86, Arm64&& arm64, Riscv64&& riscv64) {
  switch (machine) {
    case Machine::x86_64:
      return x86(true);
    case Machine::i386:
      return x86(false);
    case Machine::aarch64:
      return arm64();
    case Machine::riscv64:
      break;
  }
  return riscv64();
}

}  // namespace usdt::arch
