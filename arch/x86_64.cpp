// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>

#include "arch/dialect.hpp"
#include "arch/tables.hpp"
#include "arch/x86.hpp"
#include "usdt/bpf/cookie.h"
#include "usdt/bpf/pt_regs.h"

#ifdef __x86_64__
#include <asm/ptrace.h>

#include <cstddef>
#endif

namespace usdt::arch {
namespace {

using namespace x86;

constexpr auto kRegisters = [] {
  RegisterTable<256> table;
  for (const Family& family : {
           Family{"rax", "eax", "ax", "al", "ah", "", kAx},
           Family{"rbx", "ebx", "bx", "bl", "bh", "", kBx},
           Family{"rcx", "ecx", "cx", "cl", "ch", "", kCx},
           Family{"rdx", "edx", "dx", "dl", "dh", "", kDx},
           Family{"rsi", "esi", "si", "sil", "", "", kSi},
           Family{"rdi", "edi", "di", "dil", "", "", kDi},
           Family{"rbp", "ebp", "bp", "bpl", "", "", kBp},
           Family{"rsp", "esp", "sp", "spl", "", "", kSp},
           Family{"r8", "r8d", "r8w", "r8b", "", "r8l", kR8},
           Family{"r9", "r9d", "r9w", "r9b", "", "r9l", kR9},
           Family{"r10", "r10d", "r10w", "r10b", "", "r10l", kR10},
           Family{"r11", "r11d", "r11w", "r11b", "", "r11l", kR11},
           Family{"r12", "r12d", "r12w", "r12b", "", "r12l", kR12},
           Family{"r13", "r13d", "r13w", "r13b", "", "r13l", kR13},
           Family{"r14", "r14d", "r14w", "r14b", "", "r14l", kR14},
           Family{"r15", "r15d", "r15w", "r15b", "", "r15l", kR15},
       }) {
    add_family(table, family);
  }
  table.add({"rip", "rip", 64, 0, RegClass::ip, kIp});
  table.add({"eip", "rip", 32, 0, RegClass::ip, kIp});
  add_unreadable(table);
  return table;
}();

/// Which instructions the kernel emulates instead of stepping: arch/x86/kernel/uprobes.c, branch_setup_xol_ops()
/// and push_setup_xol_ops(); 0f 1f nops since 6.18's insn_is_nop(). Prefixed jumps and calls are stepped.
constexpr std::array kSites = {
    // libbpf/usdt usdt.h: the nop pairs of USDT_NOP on x86-64.
    pattern(SiteClass::nop_nop5, {0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00}),
    pattern(SiteClass::nop_nop10, {0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}),
    // systemtap sys/sdt.h: STAP_SDT nop.
    pattern(SiteClass::nop, {0x90}),
    // arch/x86/include/asm/nops.h BYTES_NOP5; the bytes 6.18's uprobe optimisation looks for.
    pattern(SiteClass::nop5, {0x0f, 0x1f, 0x44, 0x00, 0x00}),
    // GNU as's 10-byte nop; the bytes 7.2's uprobe optimisation looks for.
    pattern(SiteClass::nop10, {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}),
    // The other multi-byte nops of asm/nops.h. Those with a segment prefix are refused by is_prefix_bad().
    pattern(SiteClass::emulated, {0x66, 0x90}),
    pattern(SiteClass::emulated, {0x0f, 0x1f, 0x00}, {0xff, 0xff, 0x38}),
    pattern(SiteClass::emulated, {0x66, 0x0f, 0x1f, 0x00}, {0xff, 0xff, 0xff, 0x38}),
    pattern(SiteClass::emulated, {0x66, 0x66, 0x0f, 0x1f, 0x00}, {0xff, 0xff, 0xff, 0xff, 0x38}),
    // push r64, push r8..r15
    pattern(SiteClass::emulated, {0x50}, {0xf8}),
    pattern(SiteClass::emulated, {0x41, 0x50}, {0xff, 0xf8}),
    // jmp rel8, jmp rel32, call rel32, jcc rel8, jcc rel32
    pattern(SiteClass::emulated, {0xeb}),
    pattern(SiteClass::emulated, {0xe9}),
    pattern(SiteClass::emulated, {0xe8}),
    pattern(SiteClass::emulated, {0x70}, {0xf0}),
    pattern(SiteClass::emulated, {0x0f, 0x80}, {0xff, 0xf0}),
};

/// System V ABI, AMD64 supplement, 3.2.3.
constexpr auto kArguments = kRegisters.ids({"rdi", "rsi", "rdx", "rcx", "r8", "r9"});
constexpr auto kVectors = kRegisters.first<8>(kXmm);

/// The numbers of figure 3.36 of that document.
constexpr auto kDwarf = [] {
  auto order = no_registers<49>();
  kRegisters.place(order, 0,
                   {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
                    "r14", "r15", "rip"});
  kRegisters.place(order, 17, kXmm, 16);
  kRegisters.place(order, 33, kSt);
  kRegisters.place(order, 41, kMm);
  return order;
}();

/// The order of struct sigcontext_64 (arch/x86/include/uapi/asm/sigcontext.h), by DWARF numbers. It begins behind
/// uc_flags, uc_link and uc_stack of struct ucontext.
constexpr std::array<std::uint8_t, 16> kSignalOrder{8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7};
constexpr std::uint64_t kSignalContext = 40;

#ifdef __x86_64__
constexpr bool at(std::size_t offset, Word word) { return offset == 8U * static_cast<std::size_t>(word); }
static_assert(at(offsetof(pt_regs, r15), kR15) && at(offsetof(pt_regs, r14), kR14) && at(offsetof(pt_regs, r13), kR13));
static_assert(at(offsetof(pt_regs, r12), kR12) && at(offsetof(pt_regs, rbp), kBp) && at(offsetof(pt_regs, rbx), kBx));
static_assert(at(offsetof(pt_regs, r11), kR11) && at(offsetof(pt_regs, r10), kR10) && at(offsetof(pt_regs, r9), kR9));
static_assert(at(offsetof(pt_regs, r8), kR8) && at(offsetof(pt_regs, rax), kAx) && at(offsetof(pt_regs, rcx), kCx));
static_assert(at(offsetof(pt_regs, rdx), kDx) && at(offsetof(pt_regs, rsi), kSi) && at(offsetof(pt_regs, rdi), kDi));
static_assert(at(offsetof(pt_regs, orig_rax), kOrigAx) && at(offsetof(pt_regs, rip), kIp));
static_assert(at(offsetof(pt_regs, cs), kCs) && at(offsetof(pt_regs, eflags), kFlags));
static_assert(at(offsetof(pt_regs, rsp), kSp) && at(offsetof(pt_regs, ss), kSs));
#endif

}  // namespace

constinit const Arch kX86_64{
    .machine = Machine::x86_64,
    .name = "x86_64",
    .elf_machine = 62,
    .abi_flags = {.mask = 0, .value = 0},
    .word_size = 8,
    .ip_word = kIp,
    .cookie_bits = USDT_X86_REG_BITS,
    .registers = kRegisters.all(),
    .slots = kRegisters.slots,
    .sites = kSites,
    .dialect = &kX86Dialect,
    .addresses_by_ip = true,
    .thread_offset = "tpoff",
    .stack_pointer = kRegisters.id("rsp"),
    .kernel_calls = {.arguments = kArguments, .result = kRegisters.id("rax"), .result_high = RegisterId::none},
    .user_calls = {.arguments = kArguments,
                   .result = kRegisters.id("rax"),
                   .result_high = kRegisters.id("rdx"),
                   .vectors = kVectors},
    .call_traits = {.variant_arguments = {},
                    .pads_pairs = false,
                    .splits_structs = false,
                    .keeps_stack_pointer = true,
                    .passes_halves = true,
                    .passes_vectors = true},
    .numbers = {.x87_size = 16, .quad = ScalarKind::vector, .most_alignment = 0},
    .dwarf_registers = kDwarf,
    .entry_frame = 8,
    .frames = {.count = 17, .stack_pointer = 7, .frame_pointer = 6, .link = std::nullopt, .record = 0},
    .signal_frame = {.registers = kSignalOrder, .offset = kSignalContext},
    .wraps_at_32_bits = false,
    .return_address_mask = ~std::uint64_t{0},
    .relocations = {.address = R_X86_64_64,
                    .glob_dat = R_X86_64_GLOB_DAT,
                    .relative = R_X86_64_RELATIVE,
                    .irelative = R_X86_64_IRELATIVE},
    .loader = {.platform = "x86_64", .multiarch = "x86_64-linux-gnu", .cache_abi = 0x0300, .narrow_cache_abi = 0x0800},
    .kernel = {.name = "x86-64",
               .half = USDT_X86_KERNEL_HALF,
               .helper_frames = 0,
               .rewrites_nops = true,
               .steps_returns = true,
               .adds_callers = std::pair{6U, 11U},  // is_uprobe_at_func_entry() in arch/x86/events/core.c
               .guest_of = std::nullopt},
    .known_code = {.spills = true, .rust_results = true, .pieces = true, .go_registers = 17},
    .thread_segment = "fs",
    .thread_blocks = {.before = true, .reserve = 0, .vector = 8, .pointer = "fsbase", .late = false},
};

}  // namespace usdt::arch
