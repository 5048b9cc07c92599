// SPDX-License-Identifier: BSD-2-Clause
// Tables and functions shared by x86-64 and i386. Private to arch/.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "arch/arch.hpp"
#include "arch/register_table.hpp"

namespace usdt::arch::x86 {

/// 8-byte words of the 64-bit kernel's struct pt_regs: arch/x86/include/uapi/asm/ptrace.h, unchanged since 2.6.
/// A 32-bit task's registers are in the low halves of the same words.
enum Word : std::int8_t {
  kR15 = 0,
  kR14 = 1,
  kR13 = 2,
  kR12 = 3,
  kBp = 4,
  kBx = 5,
  kR11 = 6,
  kR10 = 7,
  kR9 = 8,
  kR8 = 9,
  kAx = 10,
  kCx = 11,
  kDx = 12,
  kSi = 13,
  kDi = 14,
  kOrigAx = 15,
  kIp = 16,
  kCs = 17,
  kFlags = 18,
  kSp = 19,
  kSs = 20,
};

/// uprobe_refusal() of x86-64, or of 32-bit code.
[[nodiscard]] std::string_view uprobe_refusal(std::span<const std::uint8_t> bytes, bool is64) noexcept;

/// nop_at() of x86-64 and i386.
[[nodiscard]] Nop nop_at(std::span<const std::uint8_t> bytes) noexcept;

/// One general register under all its names; an empty name does not exist on that machine. The first is canonical.
struct Family {
  std::string_view r64;
  std::string_view r32;
  std::string_view r16;
  std::string_view r8;
  std::string_view high;      ///< bits 8..15: "ah"
  std::string_view r8_alias;  ///< what some assemblers call r8: "r9l"
  Word word;
};

template <class Table>
constexpr void add_family(Table& table, const Family& family) {
  const std::string_view canon = family.r64.empty() ? family.r32 : family.r64;
  const auto add = [&](std::string_view name, std::uint16_t bits, std::uint8_t shift = 0) {
    if (!name.empty()) table.add({name, canon, bits, shift, RegClass::gpr, family.word});
  };
  add(family.r64, 64);
  add(family.r32, 32);
  add(family.r16, 16);
  add(family.r8, 8);
  add(family.r8_alias, 8);
  add(family.high, 8, 8);
}

inline constexpr NumberedNames<32> kXmm("xmm");
inline constexpr NumberedNames<32> kYmm("ymm");
inline constexpr NumberedNames<32> kZmm("zmm");
inline constexpr NumberedNames<8> kMm("mm");
inline constexpr NumberedNames<8> kSt("st");
inline constexpr NumberedNames<8> kStParen("st(", ")");

/// Vector, MMX, x87 and segment registers: names a note may hold and no uprobe can read.
template <class Table>
constexpr void add_unreadable(Table& table) {
  table.add_vectors(kXmm, 128, kXmm);
  table.add_vectors(kYmm, 256, kYmm);
  table.add_vectors(kZmm, 512, kZmm);
  table.add_vectors(kMm, 64, kMm);
  table.add_vectors(kSt, 80, kSt);
  table.add_vectors(kStParen, 80, kSt);
  table.add({"st", "st0", 80, 0, RegClass::fp, -1});
  for (const std::string_view name : {"cs", "ds", "es", "fs", "gs", "ss"}) {
    table.add({name, name, 16, 0, RegClass::segment, -1});
  }
}

}  // namespace usdt::arch::x86
