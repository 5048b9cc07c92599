// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86.hpp"

namespace usdt::arch::x86 {
namespace {

bool is_nop_prefix(std::uint8_t byte) {
  return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || (byte & 0xf0) == 0x40;  // 4x: rex
}

/// Bytes of the operand behind opcode 0f 1f: ModRM, SIB and displacement (Intel SDM volume 2, section 2.1).
std::size_t operand_size(std::uint8_t modrm, std::uint8_t sib) {
  const unsigned mod = modrm >> 6;
  const unsigned rm = modrm & 7;
  const bool has_sib = mod != 3 && rm == 4;
  const bool bare_disp32 = mod == 0 && (rm == 5 || (has_sib && (sib & 7) == 5));
  return 1U + has_sib + (mod == 1 ? 1U : 0U) + (mod == 2 || bare_disp32 ? 4U : 0U);
}

}  // namespace

Nop nop_at(std::span<const std::uint8_t> bytes) noexcept {
  std::size_t i = 0;
  while (i < bytes.size() && is_nop_prefix(bytes[i])) ++i;
  if (i < bytes.size() && bytes[i] == 0x90) return {i + 1, false};
  if (i + 3 > bytes.size() || bytes[i] != 0x0f || bytes[i + 1] != 0x1f) return {};
  const std::uint8_t sib = i + 3 < bytes.size() ? bytes[i + 3] : std::uint8_t{0};
  return {i + 2 + operand_size(bytes[i + 2], sib), true};
}

}  // namespace usdt::arch::x86
