// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>

#include <algorithm>
#include <array>

#include "arch/dialect.hpp"
#include "arch/register_table.hpp"
#include "arch/tables.hpp"
#include "usdt/bpf/cookie.h"
#include "usdt/bpf/pt_regs.h"

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
  // Its DWARF number's name (AADWARF64 section 4.1), as SystemTap and GDB read it; no assembler takes it.
  table.add({"x31", "sp", 64, 0, RegClass::gpr, kSp});
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

/// Instructions that the kernel simulates: arch/arm64/kernel/probes/decode-insn.c, arm_probe_decode_insn(). Literal
/// loads are left out: uprobes on them are refused since 6.12 (commit acc450aa0709).
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

/// Instructions that uprobes neither step nor simulate: aarch64_insn_is_steppable() and arm_probe_decode_insn() of
/// arch/arm64/kernel/probes/decode-insn.c, masks of arch/arm64/include/asm/insn.h. Where kernels differ, what one
/// of 5.10 to 7.2 refuses is here: of those that take literal loads, some read the process's memory as their own.
struct Refused {
  std::uint32_t code;
  std::uint32_t mask;
  std::string_view reason;
};
constexpr std::string_view kLiteral = "uprobes cannot move a load relative to the program counter";
constexpr std::string_view kSystem = "uprobes step no exception and no write to a system register";
constexpr std::string_view kSigned = "uprobes know no branch with pointer authentication";
constexpr std::array kRefused = {
    Refused{0x18000000, 0xbf000000, kLiteral},  // ldr (literal)
    Refused{0x98000000, 0xff000000, kLiteral},  // ldrsw (literal)
    Refused{0x1c000000, 0x3f000000, kLiteral},  // ldr (literal) of a vector register
    Refused{0xd8000000, 0xff000000, kLiteral},  // prfm (literal)
    Refused{0x08000000, 0x3f800000, "an exclusive load or store fails when it is stepped"},
    Refused{0xd4000000, 0xff000000, kSystem},  // svc, hvc, smc, brk, hlt
    Refused{0xd500401f, 0xfff8f01f, kSystem},  // msr (immediate)
    Refused{0xd5100000, 0xfff00000, kSystem},  // msr (register)
    Refused{0xd53b4220, 0xffffffe0, kSystem},  // mrs of daif
    Refused{0xd69f03e0, 0xffffffff, kSystem},  // eret
    Refused{0xd69f0bff, 0xfffffbff, kSystem},  // eretaa, eretab
    Refused{0xd65f0bff, 0xfffffbff, kSigned},  // retaa, retab
    Refused{0xd61f0800, 0xfefff800, kSigned},  // braa, brab
    Refused{0xd63f0800, 0xfefff800, kSigned},  // blraa, blrab
};

/// True for a hint that can neither fault nor wait: aarch64_insn_is_steppable_hint().
constexpr bool is_stepped_hint(std::uint32_t code) {
  switch (code >> 5 & 0x7fU) {
    case 0:   // nop
    case 7:   // xpaclri
    case 8:   // pacia1716
    case 10:  // pacib1716
    case 24:  // paciaz
    case 25:  // paciasp
    case 26:  // pacibz
    case 27:  // pacibsp
    case 32:  // bti
    case 34:  // bti c
    case 36:  // bti j
    case 38:  // bti jc
      return true;
    default:
      return false;
  }
}

/// Procedure Call Standard for the Arm 64-bit Architecture (IHI 0055), 6.8.2.
constexpr auto kArguments = kRegisters.ids({"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"});
constexpr auto kVectors = kRegisters.first<8>(kV);

/// DWARF for the Arm 64-bit Architecture (AADWARF64), section 4.1.
constexpr auto kDwarf = [] {
  auto order = no_registers<96>();
  kRegisters.place(order, 0, kX);
  kRegisters.place(order, 31, {"sp"});
  kRegisters.place(order, 64, kV);
  return order;
}();

#ifdef __aarch64__
static_assert(offsetof(user_pt_regs, regs) == 0 && sizeof(user_pt_regs::regs) == 8 * kGeneral);
static_assert(offsetof(user_pt_regs, sp) == 8 * kSp && offsetof(user_pt_regs, pc) == 8 * kPc);
#endif

}  // namespace

std::string_view aarch64_uprobe_refusal(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() < 4) return {};
  const std::uint32_t code = bytes[0] | bytes[1] << 8U | bytes[2] << 16U | static_cast<std::uint32_t>(bytes[3]) << 24U;
  constexpr std::uint32_t kHint = 0xd503201f;
  if ((code & 0xfffff01fU) == kHint) {
    return is_stepped_hint(code) ? std::string_view() : "uprobes step no hint that may wait or fault";
  }
  const auto row =
      std::ranges::find_if(kRefused, [code](const Refused& each) { return (code & each.mask) == each.code; });
  return row == kRefused.end() ? std::string_view() : row->reason;
}

constinit const Arch kAarch64{
    .machine = Machine::aarch64,
    .name = "aarch64",
    .elf_machine = 183,
    .abi_flags = {.mask = 0, .value = 0},
    .word_size = 8,
    .ip_word = kPc,
    .cookie_bits = USDT_ARM64_REG_BITS,
    .registers = kRegisters.all(),
    .slots = kRegisters.slots,
    .sites = kSites,
    .dialect = &kAarch64Dialect,
    .addresses_by_ip = false,
    .thread_offset = "",
    .stack_pointer = kRegisters.id("sp"),
    .kernel_calls = {.arguments = kArguments, .result = kRegisters.id("x0"), .result_high = RegisterId::none},
    .user_calls = {.arguments = kArguments,
                   .result = kRegisters.id("x0"),
                   .result_high = kRegisters.id("x1"),
                   .vectors = kVectors},
    .call_traits = {.variant_arguments = {},
                    .pads_pairs = true,
                    .splits_structs = false,
                    .keeps_stack_pointer = true,
                    .passes_halves = true,
                    .passes_vectors = false},
    .numbers = {.x87_size = 0, .quad = ScalarKind::floating, .most_alignment = 0},
    .dwarf_registers = kDwarf,
    .entry_frame = 0,
    .frames = {.count = 32, .stack_pointer = 31, .frame_pointer = 29, .link = 30, .record = 0},
    .signal_frame = {.registers = {}, .offset = 0},
    .wraps_at_32_bits = false,
    .return_address_mask = 0xffffffffffff,
    .relocations = {.address = R_AARCH64_ABS64,
                    .glob_dat = R_AARCH64_GLOB_DAT,
                    .relative = R_AARCH64_RELATIVE,
                    .irelative = R_AARCH64_IRELATIVE},
    .loader = {.platform = "aarch64",
               .multiarch = "aarch64-linux-gnu",
               .cache_abi = 0x0a00,
               .narrow_cache_abi = std::nullopt},
    .kernel = {.name = "arm64",
               .half = USDT_ARM64_KERNEL_HALF,
               // perf_arch_fetch_caller_regs() begins with the frame of the helper, which returns to where it begins
               // (arch/arm64/include/asm/perf_event.h).
               .helper_frames = 1,
               .rewrites_nops = false,
               .steps_returns = false,
               .adds_callers = std::nullopt,
               .guest_of = std::nullopt},
    .known_code = {.spills = false, .rust_results = false, .pieces = false, .go_registers = 18},
    .thread_segment = "",
    .thread_blocks = {.before = false, .reserve = 16, .vector = 0, .pointer = "uw", .late = true},
};

}  // namespace usdt::arch
