// SPDX-License-Identifier: BSD-2-Clause
#include "arch/register_table.hpp"
#include "arch/tables.hpp"

#ifdef __aarch64__
#include <asm/ptrace.h>

#include <cstddef>
#endif

namespace usdt::arch {
namespace {

/// 8-byte words of struct user_pt_regs, with which the kernel's pt_regs begins: arch/arm64/include/uapi/asm/ptrace.h.
/// Words 0..30 are x0..x30.
constexpr std::int8_t kSp = 31;
constexpr std::int8_t kPc = 32;

constexpr std::size_t kGeneral = 31;
constexpr NumberedNames<kGeneral> kX("x");
constexpr NumberedNames<kGeneral> kW("w");
constexpr NumberedNames<32> kB("b");
constexpr NumberedNames<32> kH("h");
constexpr NumberedNames<32> kS("s");
constexpr NumberedNames<32> kD("d");
constexpr NumberedNames<32> kQ("q");
constexpr NumberedNames<32> kV("v");

constexpr auto kRegisters = [] {
  RegisterTable<272> table;
  const auto add = [&table](std::string_view name, std::size_t number, std::uint16_t bits) {
    table.add({name, kX[number], bits, 0, RegClass::gpr, static_cast<std::int8_t>(number)});
  };
  for (std::size_t i = 0; i < kGeneral; ++i) {
    add(kX[i], i, 64);
    add(kW[i], i, 32);
  }
  // Names of the procedure call standard (AAPCS64 section 6.1.1) that assemblers take.
  add("ip0", 16, 64);
  add("ip1", 17, 64);
  add("fp", 29, 64);
  add("lr", 30, 64);
  table.add({"sp", "sp", 64, 0, RegClass::gpr, kSp});
  table.add({"wsp", "sp", 32, 0, RegClass::gpr, kSp});
  table.add({"xzr", "xzr", 64, 0, RegClass::zero, -1});
  table.add({"wzr", "xzr", 32, 0, RegClass::zero, -1});
  table.add_vectors(kB, 8, kV);
  table.add_vectors(kH, 16, kV);
  table.add_vectors(kS, 32, kV);
  table.add_vectors(kD, 64, kV);
  table.add_vectors(kQ, 128, kV);
  table.add_vectors(kV, 128, kV);
  return table;
}();

constexpr SitePattern instruction(SiteClass site_class, std::uint32_t code, std::uint32_t mask) {
  const auto byte = [](std::uint32_t word, int i) { return static_cast<std::uint8_t>(word >> (8 * i)); };
  return pattern(site_class, {byte(code, 0), byte(code, 1), byte(code, 2), byte(code, 3)},
                 {byte(mask, 0), byte(mask, 1), byte(mask, 2), byte(mask, 3)});
}

/// What the kernel simulates: arch/arm64/kernel/probes/decode-insn.c, arm_probe_decode_insn(). Literal loads are left
/// out: uprobes on them are refused since 6.12 (commit acc450aa0709).
constexpr std::array kSites = {
    instruction(SiteClass::nop, 0xd503201f, 0xffffffff),
    instruction(SiteClass::emulated, 0x54000000, 0xff000010),  // b.cond
    instruction(SiteClass::emulated, 0x34000000, 0x7e000000),  // cbz, cbnz
    instruction(SiteClass::emulated, 0x36000000, 0x7e000000),  // tbz, tbnz
    instruction(SiteClass::emulated, 0x10000000, 0x1f000000),  // adr, adrp
    instruction(SiteClass::emulated, 0x14000000, 0x7c000000),  // b, bl
    instruction(SiteClass::emulated, 0xd61f0000, 0xfffffc1f),  // br
    instruction(SiteClass::emulated, 0xd63f0000, 0xfffffc1f),  // blr
    instruction(SiteClass::emulated, 0xd65f0000, 0xfffffc1f),  // ret
};

#ifdef __aarch64__
static_assert(offsetof(user_pt_regs, regs) == 0 && sizeof(user_pt_regs::regs) == 8 * kGeneral);
static_assert(offsetof(user_pt_regs, sp) == 8 * kSp && offsetof(user_pt_regs, pc) == 8 * kPc);
#endif

}  // namespace

constinit const Arch kAarch64{
    .machine = Machine::aarch64,
    .elf_machine = 183,
    .word_size = 8,
    .ip_word = kPc,
    .registers = kRegisters.all(),
    .slots = kRegisters.slots,
    .sites = kSites,
};

}  // namespace usdt::arch
