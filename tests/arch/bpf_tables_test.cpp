// SPDX-License-Identifier: BSD-2-Clause
// What BPF programs know of a machine (usdt/bpf/pt_regs.h) is what arch/ knows of it.
#include <gtest/gtest.h>

#include <map>

#include "arch/arch.hpp"
#include "usdt/bpf/pt_regs.h"

namespace usdt::arch {
namespace {

using Offsets = std::map<int, int>;  // of registers in pt_regs, by the word a spec has for them

/// What user space writes into specs: the general registers and the instruction pointer, as the 64-bit kernel has them.
Offsets written_for(Machine machine) {
  Offsets offsets;
  for (const Register& each : for_machine(machine).registers) {
    const bool readable = each.reg_class == RegClass::gpr || each.reg_class == RegClass::ip;
    if (readable && each.pt_regs_word >= 0) offsets[each.pt_regs_word] = 8 * each.pt_regs_word;
  }
  // Notes of arm64 and riscv64 cannot name the program counter, kernels can.
  offsets[for_machine(machine).ip_word] = 8 * for_machine(machine).ip_word;
  return offsets;
}

int word_of(Machine machine, std::string_view name) { return for_machine(machine).find(name)->pt_regs_word; }

int stack_word(Machine machine) {
  const Arch& arch = for_machine(machine);
  return arch.reg(arch.stack_pointer).pt_regs_word;
}

#define ROW(word, offset) {word, offset},
const Offsets kX86{USDT_X86_PT_REGS(ROW)};
const Offsets kI386{USDT_I386_PT_REGS(ROW)};
const Offsets kArm64{USDT_ARM64_PT_REGS(ROW)};
const Offsets kRiscv{USDT_RISCV_PT_REGS(ROW)};
#undef ROW

TEST(BpfTables, read_the_registers_that_specs_number) {
  EXPECT_EQ(kX86, written_for(Machine::x86_64));
  EXPECT_EQ(kArm64, written_for(Machine::aarch64));
  EXPECT_EQ(kRiscv, written_for(Machine::riscv64));
}

TEST(BpfTables, read_those_of_a_32_bit_task_under_either_kernel) {
  for (const auto& [word, offset] : written_for(Machine::i386)) {
    EXPECT_TRUE(kX86.contains(word)) << word;
    EXPECT_TRUE(kI386.contains(word)) << word;
  }
  EXPECT_EQ(kI386.size(), written_for(Machine::i386).size()) << "and a 32-bit kernel has no others";
}

TEST(BpfTables, have_the_instruction_pointer_of_the_machine) {
  EXPECT_EQ(USDT_X86_IP_OFFSET, kX86.at(for_machine(Machine::x86_64).ip_word));
  EXPECT_EQ(USDT_I386_IP_OFFSET, kI386.at(for_machine(Machine::i386).ip_word));
  EXPECT_EQ(USDT_ARM64_IP_OFFSET, kArm64.at(for_machine(Machine::aarch64).ip_word));
  EXPECT_EQ(USDT_RISCV_IP_OFFSET, kRiscv.at(for_machine(Machine::riscv64).ip_word));
}

TEST(BpfTables, have_the_link_register_where_a_caller_is_in_no_frame_yet) {
  EXPECT_EQ(USDT_ARM64_CALLER_OFFSET, kArm64.at(30));
  EXPECT_EQ(USDT_RISCV_CALLER_OFFSET, kRiscv.at(word_of(Machine::riscv64, "ra")));
}

TEST(BpfTables, tell_calls_apart_by_the_stack_pointer_behind_the_return_address) {
  EXPECT_EQ(USDT_X86_FRAME_OFFSET, kX86.at(stack_word(Machine::x86_64)));
  EXPECT_EQ(USDT_X86_RETURN_POPS, for_machine(Machine::x86_64).word_size);
  EXPECT_EQ(USDT_X86_CODE_OFFSET, USDT_X86_IP_OFFSET + 8) << "cs, behind rip";
  EXPECT_EQ(USDT_I386_FRAME_OFFSET, kI386.at(stack_word(Machine::i386)));
  EXPECT_EQ(USDT_I386_RETURN_POPS, for_machine(Machine::i386).word_size);
  EXPECT_EQ(USDT_ARM64_FRAME_OFFSET, kArm64.at(word_of(Machine::aarch64, "fp"))) << "there by the caller's frame";
  EXPECT_EQ(USDT_ARM64_RETURN_POPS, 0);
  EXPECT_EQ(USDT_RISCV_FRAME_OFFSET, kRiscv.at(word_of(Machine::riscv64, "fp"))) << "there, too";
  EXPECT_EQ(USDT_RISCV_RETURN_POPS, 0);
}

TEST(BpfTables, look_for_the_return_address_where_frames_say_it_is) {
  const auto agrees = [](Machine machine, int caller_offset, int address_size) {
    const Arch& arch = for_machine(machine);
    EXPECT_EQ(caller_offset >= 0, arch.frames.link.has_value()) << arch.name;
    EXPECT_EQ(address_size, arch.word_size) << arch.name;
  };
  agrees(Machine::x86_64, USDT_X86_CALLER_OFFSET, USDT_X86_ADDRESS_SIZE);
  agrees(Machine::i386, USDT_I386_CALLER_OFFSET, USDT_I386_ADDRESS_SIZE);
  agrees(Machine::aarch64, USDT_ARM64_CALLER_OFFSET, USDT_ARM64_ADDRESS_SIZE);
  agrees(Machine::riscv64, USDT_RISCV_CALLER_OFFSET, USDT_RISCV_ADDRESS_SIZE);
}

TEST(BpfTables, find_threads_by_the_segment_that_addresses_name) {
  EXPECT_EQ(USDT_X86_THREAD_SEGMENT, for_machine(Machine::x86_64).thread_segment);
  EXPECT_EQ(USDT_I386_THREAD_SEGMENT, for_machine(Machine::i386).thread_segment);
  EXPECT_EQ(USDT_ARM64_THREAD_SEGMENT, for_machine(Machine::aarch64).thread_segment);
  EXPECT_EQ(USDT_RISCV_THREAD_SEGMENT, for_machine(Machine::riscv64).thread_segment);
}

TEST(BpfTables, have_every_register_in_the_field_of_a_packed_cookie) {
  for (const auto& [table, bits] : {std::pair{&kX86, USDT_X86_REG_BITS}, {&kI386, USDT_I386_REG_BITS}}) {
    for (const auto& [word, offset] : *table) {
      if (word == USDT_X86_IP_OFFSET / 8) continue;  // has a form of its own
      const int field = word == stack_word(Machine::x86_64) ? 15 : word;
      EXPECT_EQ(usdt_packed_reg(static_cast<__u64>(field), bits), word);
    }
  }
  for (const int bits : {USDT_ARM64_REG_BITS, USDT_RISCV_REG_BITS})
    for (int word = 0; word < 32; ++word) EXPECT_EQ(usdt_packed_reg(static_cast<__u64>(word), bits), word);
}

}  // namespace
}  // namespace usdt::arch
