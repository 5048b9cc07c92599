// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>
#include <gtest/gtest.h>

#include <set>

#include "arch/arch.hpp"
#include "arch/dialect.hpp"
#include "arch/host.hpp"
#include "arch/leads.hpp"
#include "arch/stack_switch.hpp"
#include "usdt/bpf/cookie.h"
#include "usdt/bpf/pt_regs.h"

namespace usdt::arch {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(Traits, are_found_by_the_machine_by_its_name_and_by_its_number_in_elf_files) {
  EXPECT_EQ(all().size(), 4U);
  for (const Arch* arch : all()) {
    EXPECT_EQ(&for_machine(arch->machine), arch);
    EXPECT_EQ(for_name(to_string(arch->machine)), arch);
    EXPECT_EQ(for_elf_machine(arch->elf_machine), arch);
  }
  EXPECT_EQ(for_elf_machine(EM_S390), nullptr);
  EXPECT_EQ(for_name("s390x"), nullptr);
  EXPECT_EQ(for_name(""), nullptr);
}

TEST(Traits, differ_in_what_names_a_machine) {
  std::set<std::string_view> names;
  for (const Arch* arch : all())
    names.insert({arch->name, arch->kernel.name, arch->loader.platform, arch->loader.multiarch});
  EXPECT_EQ(names.size(), 3 * all().size()) << "each machine has one of its four names twice";
}

TEST(Traits, name_frame_registers_that_the_table_of_dwarf_numbers_has) {
  for (const Arch* arch : all()) {
    EXPECT_EQ(arch->dwarf_registers[arch->frames.stack_pointer], arch->stack_pointer) << arch->name;
    EXPECT_NE(arch->dwarf_registers[arch->frames.frame_pointer], RegisterId::none) << arch->name;
    EXPECT_EQ(arch->frames.link.has_value(), arch->entry_frame == 0)
        << arch->name << ": the link is on the stack or not";
    for (const unsigned number : arch->signal_frame.registers) EXPECT_LT(number, arch->frames.count) << arch->name;
  }
}

TEST(Traits, have_the_constants_of_the_kernel_half) {
  EXPECT_EQ(for_machine(Machine::x86_64).cookie_bits, USDT_X86_REG_BITS);
  EXPECT_EQ(for_machine(Machine::i386).cookie_bits, USDT_I386_REG_BITS);
  EXPECT_EQ(for_machine(Machine::aarch64).cookie_bits, USDT_ARM64_REG_BITS);
  EXPECT_EQ(for_machine(Machine::riscv64).cookie_bits, USDT_RISCV_REG_BITS);
  EXPECT_EQ(for_machine(Machine::i386).kernel.half, USDT_I386_KERNEL_HALF);
  EXPECT_EQ(for_machine(Machine::aarch64).kernel.half, USDT_ARM64_KERNEL_HALF);
  EXPECT_EQ(for_machine(Machine::riscv64).kernel.half, USDT_RISCV_KERNEL_HALF);
}

TEST(Traits, say_what_runs_on_this_host) {
  EXPECT_TRUE(runs_here(host_machine()));
  const bool x86 = host_machine() == Machine::x86_64 || host_machine() == Machine::i386;
  EXPECT_EQ(runs_here(Machine::i386), x86);
  EXPECT_EQ(runs_here(Machine::aarch64), host_machine() == Machine::aarch64);
  EXPECT_EQ(runs_here(Machine::riscv64), host_machine() == Machine::riscv64);
  EXPECT_EQ(address_size(host_machine()), sizeof(void*));
}

TEST(Traits, agree_with_the_sites_about_what_a_breakpoint_on_a_return_costs) {
  for (const auto& [machine, code] :
       {std::pair(Machine::x86_64, Bytes{0xc3}), std::pair(Machine::i386, Bytes{0xc3}),
        std::pair(Machine::aarch64, Bytes{0xc0, 0x03, 0x5f, 0xd6}), std::pair(Machine::riscv64, Bytes{0x82, 0x80})})
    EXPECT_EQ(steps_returns(machine), classify_site(machine, code) == SiteClass::single_step) << to_string(machine);
}

TEST(Nops, of_x86_are_told_by_their_opcode_however_long_they_are) {
  EXPECT_EQ(nop_at(Machine::x86_64, Bytes{0x0f, 0x1f, 0x44, 0x00, 0x00}).size, 5U);
  EXPECT_TRUE(nop_at(Machine::x86_64, Bytes{0x66, 0x0f, 0x1f, 0x40, 0x00}).is_long);
  EXPECT_EQ(nop_at(Machine::x86_64, Bytes{0x66, 0x66, 0x66, 0x66, 0x90}).size, 5U);
  EXPECT_FALSE(nop_at(Machine::x86_64, Bytes{0x66, 0x66, 0x66, 0x66, 0x90}).is_long);
  EXPECT_EQ(nop_at(Machine::x86_64, Bytes{0xc3}).size, 0U);
  EXPECT_EQ(nop_at(Machine::aarch64, Bytes{0x1f, 0x20, 0x03, 0xd5}).size, 0U);
  EXPECT_EQ(nop_at(Machine::riscv64, Bytes{0x01, 0x00}).size, 0U);
}

TEST(StackSwitches, are_moves_to_the_stack_pointer_from_what_a_function_was_given) {
  EXPECT_TRUE(may_switch_stacks(Machine::x86_64, Bytes{0x90, 0x48, 0x8b, 0x26})) << "mov (%rsi),%rsp";
  EXPECT_TRUE(may_switch_stacks(Machine::x86_64, Bytes{0x48, 0x89, 0xfc})) << "mov %rdi,%rsp";
  EXPECT_FALSE(may_switch_stacks(Machine::x86_64, Bytes{0x48, 0x89, 0xec})) << "mov %rbp,%rsp";
  EXPECT_TRUE(may_switch_stacks(Machine::aarch64, Bytes{0x1f, 0x00, 0x00, 0x91})) << "mov sp, x0";
  EXPECT_FALSE(may_switch_stacks(Machine::aarch64, Bytes{0xbf, 0x03, 0x00, 0x91})) << "mov sp, x29";
  EXPECT_TRUE(may_switch_stacks(Machine::riscv64, Bytes{0x01, 0x00, 0x2a, 0x81})) << "nop; mv sp, a0";
  EXPECT_TRUE(may_switch_stacks(Machine::riscv64, Bytes{0x03, 0xb1, 0x85, 0x06})) << "ld sp, 104(a1)";
  EXPECT_FALSE(may_switch_stacks(Machine::riscv64, Bytes{0x22, 0x81})) << "mv sp, s0";
  EXPECT_FALSE(may_switch_stacks(Machine::riscv64, Bytes{0x13, 0x01, 0x04, 0xfd})) << "addi sp, s0, -48";
}

TEST(Leads, are_told_with_their_targets_and_end_when_nobody_wants_more) {
  const auto leads = [](Machine machine, const Bytes& code) {
    std::vector<std::pair<std::uint64_t, bool>> found;
    for_each_lead(machine, code, VirtAddr(0x1000), [&](VirtAddr, VirtAddr to, bool is_call) {
      found.emplace_back(to.value, is_call);
      return found.size() < 2;
    });
    return found;
  };
  using Found = std::vector<std::pair<std::uint64_t, bool>>;
  EXPECT_EQ(leads(Machine::x86_64, {0x90, 0xeb, 0xfd}), (Found{{0x1000, false}}));
  EXPECT_EQ(leads(Machine::i386, {0xe8, 0x10, 0, 0, 0}), (Found{{0x1015, true}}));
  EXPECT_EQ(leads(Machine::aarch64, {0x02, 0, 0, 0x14, 0x02, 0, 0, 0x94, 0x02, 0, 0, 0x14}),
            (Found{{0x1008, false}, {0x100c, true}}))
      << "b, bl; the third is not asked about";
  EXPECT_EQ(leads(Machine::riscv64, {0x01, 0x00, 0x09, 0xa0, 0xef, 0x00, 0x80, 0x00}),
            (Found{{0x1004, false}, {0x100c, true}}))
      << "nop; c.j .+2; jal .+8";
  EXPECT_EQ(leads(Machine::riscv64, {0x97, 0x10, 0x00, 0x00, 0xe7, 0x80, 0x40, 0x01}), (Found{{0x2014, true}}))
      << "auipc ra, 1; jalr 20(ra)";
}

TEST(Dialects, write_addresses_as_notes_do) {
  const auto text = [](Machine machine, std::string_view base, std::uint64_t displacement) {
    const Arch& arch = for_machine(machine);
    return arch.dialect->memory_text(arch, {.displacement = displacement, .base = arch.id(*arch.find(base))});
  };
  EXPECT_EQ(text(Machine::x86_64, "rbp", static_cast<std::uint64_t>(-20)), "-20(%rbp)");
  EXPECT_EQ(text(Machine::i386, "esp", 4), "4(%esp)");
  EXPECT_EQ(text(Machine::aarch64, "sp", 60), "[sp, 60]");
  EXPECT_EQ(text(Machine::riscv64, "s0", static_cast<std::uint64_t>(-20)), "-20(s0)");
}

TEST(Dialects, refuse_addresses_that_the_machine_lacks) {
  const auto refusal = [](Machine machine, std::string_view base, std::string_view index) {
    const Arch& arch = for_machine(machine);
    const MemOperand operand{.base = base, .index = index, .symbol = {}, .segment = {}};
    Memory memory;
    const auto refused = arch.dialect->check_address(arch, operand, {arch.find(base), arch.find(index)}, memory);
    return refused ? refused->reason : std::string();
  };
  EXPECT_EQ(refusal(Machine::x86_64, "rip", ""), "");
  EXPECT_EQ(refusal(Machine::i386, "eip", ""), "register eip cannot address memory");
  EXPECT_EQ(refusal(Machine::i386, "eax", "esp"), "the stack pointer cannot be an index");
  EXPECT_EQ(refusal(Machine::aarch64, "w0", ""), "register w0 cannot be a base: only x0..x30 and sp can");
  EXPECT_EQ(refusal(Machine::riscv64, "zero", ""), "") << "an address alone";
  EXPECT_EQ(refusal(Machine::riscv64, "fa0", ""), "register fa0 cannot be a base: only x0 to x31 can");
}

}  // namespace
}  // namespace usdt::arch
