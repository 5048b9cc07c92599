// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>

#include <algorithm>

#include "arch/dialect.hpp"
#include "arch/tables.hpp"
#include "arch/x86.hpp"
#include "usdt/bpf/cookie.h"
#include "usdt/bpf/pt_regs.h"

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

/// The kernel is compiled with -mregparm=3 (arch/x86/Makefile).
constexpr auto kArguments = kRegisters.ids({"eax", "edx", "ecx"});

/// System V ABI, Intel386 supplement, table 2.14.
constexpr auto kDwarf = [] {
  auto order = no_registers<37>();
  kRegisters.place(order, 0, {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"});
  kRegisters.place(order, 11, kSt);
  kRegisters.place(order, 21, kXmm, 8);
  kRegisters.place(order, 29, kMm);
  return order;
}();

}  // namespace

constinit const Arch kI386{
    .machine = Machine::i386,
    .name = "i386",
    .elf_machine = 3,
    .abi_flags = {.mask = 0, .value = 0},
    .word_size = 4,
    .ip_word = kIp,
    .cookie_bits = USDT_I386_REG_BITS,
    .registers = kRegisters.all(),
    .slots = kRegisters.slots,
    .sites = kSites,
    .dialect = &kX86Dialect,
    .addresses_by_ip = false,
    .thread_offset = "ntpoff",
    .stack_pointer = kRegisters.id("esp"),
    .kernel_calls = {.arguments = kArguments, .result = kRegisters.id("eax"), .result_high = kRegisters.id("edx")},
    .user_calls = {.arguments = {}, .result = kRegisters.id("eax"), .result_high = kRegisters.id("edx")},
    // -mregparm passes arguments in the registers in which the kernel has them; fastcall and thiscall in two of these.
    .call_traits = {.variant_arguments = kArguments,
                    .pads_pairs = false,
                    .splits_structs = true,        // Clang does
                    .keeps_stack_pointer = false,  // a function that returns a struct removes an argument
                    .passes_halves = false,
                    .passes_vectors = false},
    .numbers = {.x87_size = 12, .quad = ScalarKind::other, .most_alignment = 4},
    .dwarf_registers = kDwarf,
    .entry_frame = 4,
    .frames = {.count = 9, .stack_pointer = 4, .frame_pointer = 5, .link = std::nullopt, .record = 0},
    .signal_frame = {.registers = {}, .offset = 0},
    .wraps_at_32_bits = true,
    .return_address_mask = 0xffffffff,
    .relocations = {.address = R_386_32,
                    .glob_dat = R_386_GLOB_DAT,
                    .relative = R_386_RELATIVE,
                    .irelative = R_386_IRELATIVE},
    .loader = {.platform = "i686", .multiarch = "i386-linux-gnu", .cache_abi = 0, .narrow_cache_abi = std::nullopt},
    .kernel = {.name = "i386",
               .half = USDT_I386_KERNEL_HALF,
               .helper_frames = 0,
               .rewrites_nops = false,
               .steps_returns = true,
               .adds_callers = std::nullopt,
               .guest_of = Machine::x86_64},
    .known_code = {.spills = false, .rust_results = false, .pieces = false, .go_registers = 0},
    .thread_segment = "gs",
    .thread_blocks = {.before = true, .reserve = 0, .vector = 4, .pointer = "", .late = false},
};

RegisterId pair_high(const Arch& arch, const Register& reg) noexcept {
  // gcc/config/i386/i386.h: hard register numbers 0..6. A DImode value takes a register and the next one.
  static constexpr auto kOrder = kRegisters.ids({"eax", "edx", "ecx", "ebx", "esi", "edi", "ebp"});
  if (arch.machine != Machine::i386 || reg.bits != 32) return RegisterId::none;
  const auto* const found = std::ranges::find(kOrder, arch.id(reg));
  return found == kOrder.end() || found + 1 == kOrder.end() ? RegisterId::none : found[1];
}

}  // namespace usdt::arch
