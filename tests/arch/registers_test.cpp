// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "arch/arch.hpp"

namespace usdt::arch {
namespace {

constexpr Machine kMachines[] = {Machine::x86_64, Machine::i386, Machine::aarch64, Machine::riscv64};

struct Expected {
  std::string_view name;
  std::string_view canon;
  unsigned bits;
  unsigned shift;
  int word;
  RegClass reg_class = RegClass::gpr;
};

void expect_register(Machine machine, const Expected& expected) {
  SCOPED_TRACE(expected.name);
  const Register* found = for_machine(machine).find(expected.name);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, expected.name);
  EXPECT_EQ(found->canon, expected.canon);
  EXPECT_EQ(found->bits, expected.bits);
  EXPECT_EQ(found->shift, expected.shift);
  EXPECT_EQ(found->pt_regs_word, expected.word);
  EXPECT_EQ(found->reg_class, expected.reg_class);
}

TEST(Registers, of_x86_64_have_the_words_of_the_kernels_pt_regs) {
  const std::string_view order[] = {"r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10",
                                    "r9",  "r8",  "rax", "rcx", "rdx", "rsi", "rdi"};
  for (int word = 0; word < 15; ++word) expect_register(Machine::x86_64, {order[word], order[word], 64, 0, word});
  expect_register(Machine::x86_64, {"rip", "rip", 64, 0, 16, RegClass::ip});
  expect_register(Machine::x86_64, {"rsp", "rsp", 64, 0, 19});
}

TEST(Registers, of_x86_64_are_found_by_every_width) {
  for (const Expected& expected : {
           Expected{"eax", "rax", 32, 0, 10},
           Expected{"ax", "rax", 16, 0, 10},
           Expected{"al", "rax", 8, 0, 10},
           Expected{"ah", "rax", 8, 8, 10},
           Expected{"bh", "rbx", 8, 8, 5},
           Expected{"ch", "rcx", 8, 8, 11},
           Expected{"dh", "rdx", 8, 8, 12},
           Expected{"sil", "rsi", 8, 0, 13},
           Expected{"dil", "rdi", 8, 0, 14},
           Expected{"bpl", "rbp", 8, 0, 4},
           Expected{"spl", "rsp", 8, 0, 19},
           Expected{"r8d", "r8", 32, 0, 9},
           Expected{"r13w", "r13", 16, 0, 2},
           Expected{"r15b", "r15", 8, 0, 0},
           Expected{"r10l", "r10", 8, 0, 7},
           Expected{"eip", "rip", 32, 0, 16, RegClass::ip},
           Expected{"xmm31", "xmm31", 128, 0, -1, RegClass::fp},
           Expected{"st(7)", "st7", 80, 0, -1, RegClass::fp},
           Expected{"fs", "fs", 16, 0, -1, RegClass::segment},
       }) {
    expect_register(Machine::x86_64, expected);
  }
}

TEST(Registers, of_i386_map_to_the_same_words_of_the_sixty_four_bit_kernel) {
  const Arch& wide = for_machine(Machine::x86_64);
  for (const Register& entry : for_machine(Machine::i386).registers) {
    const Register* same = wide.find(entry.name);
    ASSERT_NE(same, nullptr) << entry.name;
    EXPECT_EQ(entry.pt_regs_word, same->pt_regs_word) << entry.name;
    EXPECT_EQ(entry.bits, same->bits) << entry.name;
    EXPECT_EQ(entry.shift, same->shift) << entry.name;
  }
  expect_register(Machine::i386, {"ah", "eax", 8, 8, 10});
  expect_register(Machine::i386, {"esp", "esp", 32, 0, 19});
}

TEST(Registers, of_i386_have_no_sixty_four_bit_names) {
  for (const char* name : {"rax", "r8", "r8d", "rip", "sil", "spl"}) {
    EXPECT_EQ(for_machine(Machine::i386).find(name), nullptr) << name;
  }
}

TEST(Registers, of_arm64_are_the_words_of_user_pt_regs) {
  for (int i = 0; i <= 30; ++i) {
    const std::string x = std::string("x").append(std::to_string(i));
    expect_register(Machine::aarch64, {x, x, 64, 0, i});
    expect_register(Machine::aarch64, {std::string("w").append(std::to_string(i)), x, 32, 0, i});
  }
  for (const Expected& expected : {
           Expected{"sp", "sp", 64, 0, 31},
           Expected{"wsp", "sp", 32, 0, 31},
           Expected{"fp", "x29", 64, 0, 29},
           Expected{"lr", "x30", 64, 0, 30},
           Expected{"xzr", "xzr", 64, 0, -1, RegClass::zero},
           Expected{"wzr", "xzr", 32, 0, -1, RegClass::zero},
           Expected{"b31", "v31", 8, 0, -1, RegClass::fp},
           Expected{"h0", "v0", 16, 0, -1, RegClass::fp},
           Expected{"s9", "v9", 32, 0, -1, RegClass::fp},
           Expected{"d10", "v10", 64, 0, -1, RegClass::fp},
           Expected{"q3", "v3", 128, 0, -1, RegClass::fp},
           Expected{"v30", "v30", 128, 0, -1, RegClass::fp},
       }) {
    expect_register(Machine::aarch64, expected);
  }
}

TEST(Registers, of_riscv64_are_the_words_of_user_regs_struct_by_either_name) {
  const std::string_view order[] = {"ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0", "a1",
                                    "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5", "s6",
                                    "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};
  for (int i = 1; i <= 31; ++i) {
    expect_register(Machine::riscv64, {order[i - 1], order[i - 1], 64, 0, i});
    expect_register(Machine::riscv64, {std::string("x").append(std::to_string(i)), order[i - 1], 64, 0, i});
  }
  for (const Expected& expected : {
           Expected{"fp", "s0", 64, 0, 8},
           Expected{"zero", "zero", 64, 0, -1, RegClass::zero},
           Expected{"x0", "zero", 64, 0, -1, RegClass::zero},
           Expected{"fa0", "fa0", 64, 0, -1, RegClass::fp},
           Expected{"f10", "fa0", 64, 0, -1, RegClass::fp},
           Expected{"ft11", "ft11", 64, 0, -1, RegClass::fp},
           Expected{"f31", "ft11", 64, 0, -1, RegClass::fp},
       }) {
    expect_register(Machine::riscv64, expected);
  }
}

TEST(Registers, are_found_by_exactly_their_name) {
  for (const Machine machine : kMachines) {
    const Arch& arch = for_machine(machine);
    std::set<std::string_view> names;
    for (const Register& entry : arch.registers) {
      EXPECT_EQ(arch.find(entry.name), &entry) << entry.name;
      EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    }
    for (const char* name : {"", "x32", "w31", "r16", "foo", "%rax", "rax ", "x5foo", "xmm32", "a", "rrrrrrrrrrr"}) {
      EXPECT_EQ(arch.find(name), nullptr) << name;
    }
  }
}

TEST(Registers, have_a_canonical_name_that_is_a_register_itself_and_holds_them) {
  for (const Machine machine : kMachines) {
    const Arch& arch = for_machine(machine);
    for (const Register& entry : arch.registers) {
      const Register* canon = arch.find(entry.canon);
      ASSERT_NE(canon, nullptr) << entry.name;
      EXPECT_EQ(canon->canon, canon->name);
      EXPECT_EQ(canon->pt_regs_word, entry.pt_regs_word);
      EXPECT_LE(entry.bits + entry.shift, canon->bits);
    }
  }
}

TEST(Registers, pair_as_gcc_orders_them) {
  const auto high = [](Machine machine, std::string_view name) -> std::string_view {
    const Arch& arch = for_machine(machine);
    const RegisterId id = pair_high(arch, *arch.find(name));
    return id == RegisterId::none ? "" : arch.reg(id).name;
  };
  EXPECT_EQ(high(Machine::i386, "eax"), "edx");
  EXPECT_EQ(high(Machine::i386, "edx"), "ecx");
  EXPECT_EQ(high(Machine::i386, "ecx"), "ebx");
  EXPECT_EQ(high(Machine::i386, "ebx"), "esi");
  EXPECT_EQ(high(Machine::i386, "esi"), "edi");
  EXPECT_EQ(high(Machine::i386, "edi"), "ebp");
  for (const char* none : {"ebp", "esp", "ax", "al", "st(1)"}) EXPECT_EQ(high(Machine::i386, none), "") << none;
  EXPECT_EQ(high(Machine::x86_64, "eax"), "");
}

TEST(Registers, are_known_in_either_case) {
  EXPECT_EQ(for_machine(Machine::x86_64).find("RAX"), for_machine(Machine::x86_64).find("rax"));
  EXPECT_EQ(for_machine(Machine::aarch64).find("Wzr"), for_machine(Machine::aarch64).find("wzr"));
}

TEST(Machines, are_known_by_their_elf_number) {
  for (const Machine machine : kMachines) {
    const Arch& arch = for_machine(machine);
    EXPECT_EQ(arch.machine, machine);
    EXPECT_EQ(for_elf_machine(arch.elf_machine), &arch);
  }
  EXPECT_EQ(for_machine(Machine::i386).word_size, 4);
  EXPECT_EQ(for_elf_machine(40), nullptr) << "EM_ARM";
  EXPECT_EQ(for_elf_machine(0), nullptr);
}

}  // namespace
}  // namespace usdt::arch
