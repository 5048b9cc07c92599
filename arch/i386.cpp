// SPDX-License-Identifier: BSD-2-Clause
#include "arch/tables.hpp"
#include "arch/x86.hpp"

namespace usdt::arch {
namespace {

using namespace x86;

constexpr auto kRegisters = [] {
  RegisterTable<160> table;
  for (const Family& family : {
           Family{"", "eax", "ax", "al", "ah", "", kAx},
           Family{"", "ebx", "bx", "bl", "bh", "", kBx},
           Family{"", "ecx", "cx", "cl", "ch", "", kCx},
           Family{"", "edx", "dx", "dl", "dh", "", kDx},
           Family{"", "esi", "si", "", "", "", kSi},
           Family{"", "edi", "di", "", "", "", kDi},
           Family{"", "ebp", "bp", "", "", "", kBp},
           Family{"", "esp", "sp", "", "", "", kSp},
       }) {
    add_family(table, family);
  }
  table.add({"eip", "eip", 32, 0, RegClass::ip, kIp});
  add_unreadable(table);
  return table;
}();

/// As in x86_64.cpp, for 32-bit code: 41 is no prefix here but `inc %ecx`. The kernel optimises no nop of a 32-bit
/// task, and i386 has no red zone, so that a 5-byte nop is one emulated nop among others.
constexpr std::array kSites = {
    pattern(SiteClass::nop, {0x90}),
    pattern(SiteClass::emulated, {0x66, 0x90}),
    pattern(SiteClass::emulated, {0x0f, 0x1f, 0x00}, {0xff, 0xff, 0x38}),
    pattern(SiteClass::emulated, {0x66, 0x0f, 0x1f, 0x00}, {0xff, 0xff, 0xff, 0x38}),
    pattern(SiteClass::emulated, {0x66, 0x66, 0x0f, 0x1f, 0x00}, {0xff, 0xff, 0xff, 0xff, 0x38}),
    pattern(SiteClass::emulated, {0x50}, {0xf8}),
    pattern(SiteClass::emulated, {0xeb}),
    pattern(SiteClass::emulated, {0xe9}),
    pattern(SiteClass::emulated, {0xe8}),
    pattern(SiteClass::emulated, {0x70}, {0xf0}),
    pattern(SiteClass::emulated, {0x0f, 0x80}, {0xff, 0xf0}),
};

}  // namespace

constinit const Arch kI386{
    .machine = Machine::i386,
    .elf_machine = 3,
    .word_size = 4,
    .ip_word = kIp,
    .registers = kRegisters.all(),
    .slots = kRegisters.slots,
    .sites = kSites,
};

std::string_view i386_pair_high(std::string_view canon) noexcept {
  // gcc/config/i386/i386.h: hard register numbers 0..6. A DImode value takes a register and the next one.
  constexpr std::array<std::string_view, 7> kOrder = {"eax", "edx", "ecx", "ebx", "esi", "edi", "ebp"};
  for (std::size_t i = 0; i + 1 < kOrder.size(); ++i) {
    if (kOrder[i] == canon) return kOrder[i + 1];
  }
  return {};
}

}  // namespace usdt::arch
