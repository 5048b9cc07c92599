// SPDX-License-Identifier: BSD-2-Clause
#include "arch/stack_switch.hpp"

#include <cstddef>

#include "arch/riscv64.hpp"

namespace usdt::arch {
namespace {

/// "mov (%rsi),%rsp" and the like; "mov %rdi,%rsp", "mov %rsi,%rsp".
bool loads_rsp(std::span<const std::uint8_t> code) noexcept {
  constexpr std::uint8_t rex_w = 0x48;
  for (std::size_t i = 0; i + 2 < code.size(); ++i) {
    if (code[i] != rex_w) continue;
    const unsigned mod = code[i + 2] >> 6;
    const unsigned reg = code[i + 2] >> 3 & 7U;
    const unsigned rm = code[i + 2] & 7U;
    constexpr unsigned stack = 4;
    constexpr unsigned frame = 5;
    if (code[i + 1] == 0x8b && mod != 3 && reg == stack && rm != stack && rm != frame) return true;
    if (code[i + 1] == 0x89 && mod == 3 && rm == stack && reg >= 6) return true;
    if (code[i + 1] == 0x8b && mod == 3 && reg == stack && rm >= 6) return true;
  }
  return false;
}

/// "mov sp, x0" to x8.
bool loads_sp(std::span<const std::uint8_t> code) noexcept {
  for (std::size_t i = 0; i + 4 <= code.size(); i += 4) {
    const std::uint32_t word =
        code[i] | code[i + 1] << 8U | code[i + 2] << 16U | static_cast<std::uint32_t>(code[i + 3]) << 24U;
    if ((word & 0xfffffe1f) == 0x9100001f && (word >> 5 & 31) <= 8) return true;
  }
  return false;
}

}  // namespace

bool may_switch_stacks(Machine machine, std::span<const std::uint8_t> code) noexcept {
  switch (machine) {
    case Machine::x86_64:
      return loads_rsp(code);
    case Machine::i386:
      return false;
    case Machine::aarch64:
      return loads_sp(code);
    case Machine::riscv64:
      break;
  }
  return riscv64::may_switch_stacks(code);
}

}  // namespace usdt::arch
