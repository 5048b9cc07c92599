// SPDX-License-Identifier: BSD-2-Clause
#include "arch/riscv64.hpp"

#include <elf.h>

#include <array>

#include "arch/dialect.hpp"
#include "arch/register_table.hpp"
#include "arch/tables.hpp"
#include "usdt/bpf/pt_regs.h"

#if defined(__riscv) && __riscv_xlen == 64
#include <asm/ptrace.h>

#include <cstddef>
#endif

namespace usdt::arch {
namespace {

/// 8-byte words of struct user_regs_struct, with which the kernel's pt_regs begins: arch/riscv/include/uapi/asm/
/// ptrace.h. Word 0 is the program counter, word N register xN.
constexpr std::int8_t kPc = 0;

constexpr std::size_t kCount = 32;
constexpr NumberedNames<kCount> kX("x");
constexpr NumberedNames<kCount> kF("f");

/// Names of the ABI, which compilers write, by number (RISC-V ELF psABI, "Register Convention").
constexpr std::string_view kGeneral[] = {"zero", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
                                         "a1",   "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
                                         "s6",   "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};
constexpr std::string_view kFloating[] = {
    "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0",  "fa1",  "fa2", "fa3", "fa4",  "fa5",
    "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11"};

constexpr auto kRegisters = [] {
  RegisterTable<4 * kCount + 1> table;
  const auto add = [&table](std::string_view name, std::size_t number) {
    const bool zero = number == 0;
    table.add({name, kGeneral[number], 64, 0, zero ? RegClass::zero : RegClass::gpr,
               static_cast<std::int8_t>(zero ? -1 : static_cast<int>(number))});
  };
  for (std::size_t i = 0; i < kCount; ++i) {
    add(kGeneral[i], i);
    add(kX[i], i);
    table.add({kFloating[i], kFloating[i], 64, 0, RegClass::fp, -1});
    table.add({kF[i], kFloating[i], 64, 0, RegClass::fp, -1});
  }
  add("fp", riscv64::kS0);
  return table;
}();

/// Instructions that the kernel simulates: arch/riscv/kernel/probes/decode-insn.c, riscv_probe_decode_insn(). The nop
/// that compilers put at probes is none of them: it is stepped.
constexpr std::array kSites = {
    instruction(SiteClass::emulated, 0x0000006f, 0x0000007f),   // jal
    instruction(SiteClass::emulated, 0x00000067, 0x0000707f),   // jalr
    instruction(SiteClass::emulated, 0x00000017, 0x0000007f),   // auipc
    instruction(SiteClass::emulated, 0x00000063, 0x0000007f),   // beq, bne, blt, bge, bltu, bgeu
    short_instruction(SiteClass::single_step, 0x9002, 0xffff),  // c.ebreak
    short_instruction(SiteClass::emulated, 0xa001, 0xe003),     // c.j
    short_instruction(SiteClass::emulated, 0x8002, 0xf07f),     // c.jr
    short_instruction(SiteClass::emulated, 0x9002, 0xf07f),     // c.jalr
    short_instruction(SiteClass::emulated, 0xc001, 0xc003),     // c.beqz, c.bnez
};

/// RISC-V Calling Conventions, "Integer Calling Convention" and "Hardware Floating-point Calling Convention".
constexpr auto kArguments = kRegisters.ids({"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"});
constexpr auto kVectors = kRegisters.ids({"fa0", "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7"});

/// RISC-V DWARF Specification, "DWARF register numbers".
constexpr auto kDwarf = [] {
  auto order = no_registers<2 * kCount>();
  kRegisters.place(order, 0, kGeneral);
  kRegisters.place(order, kCount, kFloating);
  return order;
}();

#if defined(__riscv) && __riscv_xlen == 64
static_assert(offsetof(user_regs_struct, pc) == 8 * kPc && offsetof(user_regs_struct, ra) == 8 * riscv64::kRa);
static_assert(offsetof(user_regs_struct, a0) == 8 * riscv64::kA0 && offsetof(user_regs_struct, t6) == 8 * riscv64::kT6);
#endif

}  // namespace

constinit const Arch kRiscv64{
    .machine = Machine::riscv64,
    .name = "riscv64",
    .elf_machine = EM_RISCV,
    .abi_flags = {.mask = EF_RISCV_FLOAT_ABI | EF_RISCV_RVE, .value = EF_RISCV_FLOAT_ABI_DOUBLE},
    .word_size = 8,
    .ip_word = kPc,
    .cookie_bits = USDT_RISCV_REG_BITS,
    .registers = kRegisters.all(),
    .slots = kRegisters.slots,
    .sites = kSites,
    .dialect = &kRiscv64Dialect,
    .addresses_by_ip = false,
    .thread_offset = "",
    .stack_pointer = kRegisters.id("sp"),
    .kernel_calls = {.arguments = kArguments, .result = kRegisters.id("a0"), .result_high = RegisterId::none},
    .user_calls = {.arguments = kArguments,
                   .result = kRegisters.id("a0"),
                   .result_high = kRegisters.id("a1"),
                   .vectors = kVectors},
    .call_traits = {.variant_arguments = {},
                    .pads_pairs = false,
                    .splits_structs = true,
                    .keeps_stack_pointer = true,
                    .passes_halves = true,
                    .passes_vectors = false},
    .numbers = {.x87_size = 0, .quad = ScalarKind::floating, .most_alignment = 0},
    .dwarf_registers = kDwarf,
    .entry_frame = 0,
    // RISC-V ELF psABI, "Frame Pointer Convention".
    .frames = {.count = kCount,
               .stack_pointer = riscv64::kSp,
               .frame_pointer = riscv64::kS0,
               .link = riscv64::kRa,
               .record = -16},
    .signal_frame = {.registers = {}, .offset = 0},
    .wraps_at_32_bits = false,
    .return_address_mask = ~std::uint64_t{0},
    .relocations = {.address = R_RISCV_64,
                    .glob_dat = R_RISCV_64,
                    .relative = R_RISCV_RELATIVE,
                    .irelative = R_RISCV_IRELATIVE},
    // The kernel gives no AT_PLATFORM (arch/riscv/include/asm/elf.h). Its cache has FLAG_RISCV_FLOAT_ABI_DOUBLE.
    .loader = {.platform = "", .multiarch = "riscv64-linux-gnu", .cache_abi = 0x1000, .narrow_cache_abi = std::nullopt},
    .kernel = {.name = "riscv64",
               .half = USDT_RISCV_KERNEL_HALF,
               // As of arm64: perf_arch_fetch_caller_regs() of arch/riscv/include/asm/perf_event.h.
               .helper_frames = 1,
               .rewrites_nops = false,
               .steps_returns = false,
               .adds_callers = std::nullopt,
               .guest_of = std::nullopt},
    .known_code = {.spills = false, .rust_results = false, .pieces = false, .go_registers = 19},
    .thread_segment = "",
    .thread_blocks = {.before = false, .reserve = 0, .vector = std::nullopt, .pointer = "", .late = false},
};

}  // namespace usdt::arch
