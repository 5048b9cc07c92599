// SPDX-License-Identifier: BSD-2-Clause
// Encodings as GNU as makes them.
#include "arch/instructions.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

namespace usdt::arch {
namespace {

void expect(Machine machine, std::initializer_list<int> bytes, Flow flow, std::optional<std::int64_t> target,
            const char* what) {
  std::vector<std::uint8_t> code(bytes.begin(), bytes.end());
  const std::size_t size = code.size();
  code.resize(size + 4, 0x90);
  const Instruction found = decode_instruction(machine, code);
  EXPECT_EQ(found.size, size) << what;
  EXPECT_EQ(found.flow, flow) << what;
  EXPECT_EQ(found.target, target) << what;
}

void expect_arm64(std::uint32_t word, Flow flow, std::optional<std::int64_t> target, const char* what) {
  const auto byte = [word](unsigned n) { return static_cast<int>(word >> 8 * n & 0xff); };
  expect(Machine::aarch64, {byte(0), byte(1), byte(2), byte(3)}, flow, target, what);
}

TEST(Instructions, of_x86_say_what_runs_behind_them) {
  for (const Machine machine : {Machine::x86_64, Machine::i386}) {
    expect(machine, {0xc3}, Flow::ret, {}, "ret");
    expect(machine, {0xf3, 0xc3}, Flow::ret, {}, "repz ret");
    expect(machine, {0xc2, 0x04, 0x00}, Flow::ret, {}, "ret $4");
    expect(machine, {0xeb, 0xfe}, Flow::jump, 0, "jmp .");
    expect(machine, {0xe9, 0x0b, 0x01, 0x00, 0x00}, Flow::jump, 0x110, "jmp .+0x110");
    expect(machine, {0x76, 0x10}, Flow::branch, 0x12, "jbe .+0x12");
    expect(machine, {0x0f, 0x86, 0xca, 0xff, 0xff, 0xff}, Flow::branch, -0x30, "jbe .-0x30");
    expect(machine, {0xe8, 0xfb, 0xff, 0xff, 0xff}, Flow::call, 0, "call .");
    expect(machine, {0xff, 0xe0}, Flow::jump, {}, "jmp *%rax");
    expect(machine, {0xff, 0xd0}, Flow::call, {}, "call *%rax");
    expect(machine, {0x89, 0xd8}, Flow::next, {}, "mov %ebx,%eax");
    expect(machine, {0xcf}, Flow::next, {}, "iret, which ends no function");
  }
}

TEST(Instructions, of_x86_that_run_once_a_round_and_that_call_the_kernel_are_told) {
  const auto code = [](std::vector<std::uint8_t> bytes) { return decode_instruction(Machine::x86_64, bytes); };
  EXPECT_TRUE(code({0xf3, 0xaa}).repeats) << "rep stosb";
  EXPECT_TRUE(code({0xf3, 0x48, 0xa5}).repeats) << "rep movsq";
  EXPECT_TRUE(code({0xf2, 0xae}).repeats) << "repne scasb";
  for (const auto& bytes : {std::vector<std::uint8_t>{0xaa}, {0xf3, 0xc3}, {0xf3, 0x0f, 0x1e, 0xfa}, {0xf3, 0x90}})
    EXPECT_FALSE(code(bytes).repeats) << "stosb, repz ret, endbr64, pause";
  EXPECT_TRUE(code({0x0f, 0x05}).calls_kernel);
  EXPECT_TRUE(code({0xcd, 0x80}).calls_kernel);
  EXPECT_FALSE(code({0xc3}).calls_kernel);
}

TEST(Instructions, that_are_nops_and_a_return_return_at_once) {
  const auto returns = [](Machine machine, std::vector<std::uint8_t> code) { return returns_at_once(machine, code); };
  const Machine x86 = Machine::x86_64;
  EXPECT_TRUE(returns(x86, {0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc3}))
      << "nop, nopw, ret";
  EXPECT_TRUE(returns(x86, {0xc3}));
  EXPECT_FALSE(returns(x86, {0x90, 0x5d, 0xc3})) << "nop, pop %rbp, ret";
  EXPECT_FALSE(returns(x86, {0x90, 0x48, 0x83, 0xc4, 0x08, 0xc3})) << "nop, add $8,%rsp, ret";
  EXPECT_FALSE(returns(x86, {0x90, 0x90})) << "what follows is not there";
  EXPECT_TRUE(returns(Machine::aarch64, {0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6})) << "nop, ret";
  EXPECT_FALSE(returns(Machine::aarch64, {0x1f, 0x20, 0x03, 0xd5, 0x20, 0x00, 0x5f, 0xd6})) << "nop, ret x1";
  EXPECT_TRUE(returns(Machine::riscv64, {0x01, 0x00, 0x13, 0x00, 0x00, 0x00, 0x82, 0x80})) << "c.nop, nop, ret";
  EXPECT_FALSE(returns(Machine::riscv64, {0x01, 0x00, 0xa2, 0x60, 0x82, 0x80})) << "c.nop, ld ra, 8(sp), ret";
}

TEST(Instructions, behind_which_a_call_returns_are_calls) {
  const auto ends = [](Machine machine, std::vector<std::uint8_t> code) { return ends_with_call(machine, code); };
  const Machine x86 = Machine::x86_64;
  EXPECT_TRUE(ends(x86, {0x00, 0x00, 0x00, 0xe8, 0x10, 0x20, 0x30, 0x40})) << "call .+0x40302015";
  EXPECT_TRUE(ends(x86, {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xd0})) << "call *%rax";
  EXPECT_TRUE(ends(x86, {0x00, 0x00, 0x00, 0x00, 0x00, 0x41, 0xff, 0xd4})) << "call *%r12";
  EXPECT_TRUE(ends(x86, {0x00, 0x00, 0x42, 0xff, 0x94, 0xe5, 0x10, 0x00, 0x00, 0x00})) << "call *0x10(%rbp,%r12,8)";
  EXPECT_TRUE(ends(x86, {0x00, 0x00, 0xff, 0x15, 0x10, 0x20, 0x30, 0x40})) << "call *0x40302010(%rip)";
  EXPECT_FALSE(ends(x86, {0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00})) << "nopl 0x0(%rax,%rax,1)";
  EXPECT_FALSE(ends(x86, {0x00, 0x00, 0x00, 0xe9, 0x10, 0x20, 0x30, 0x40})) << "jmp .+0x40302015";
  EXPECT_FALSE(ends(x86, {}));
  EXPECT_TRUE(ends(Machine::aarch64, {0x1f, 0x20, 0x03, 0xd5, 0xfe, 0xff, 0xff, 0x97})) << "nop, bl .-8";
  EXPECT_FALSE(ends(Machine::aarch64, {0xfe, 0xff, 0xff, 0x97, 0x1f, 0x20, 0x03, 0xd5})) << "bl .-8, nop";
}

TEST(Instructions, that_keep_arguments_write_no_register_or_memory_that_functions_are_given) {
  const auto keeps = [](std::vector<std::uint8_t> code) { return keeps_arguments(Machine::x86_64, code); };
  EXPECT_TRUE(keeps({0x48, 0x85, 0xff})) << "test %rdi,%rdi";
  EXPECT_TRUE(keeps({0x31, 0xc0})) << "xor %eax,%eax";
  EXPECT_TRUE(keeps({0x4c, 0x8b, 0x1d, 0, 0, 0, 0})) << "mov 0(%rip),%r11";
  EXPECT_TRUE(keeps({0x48, 0x8b, 0x44, 0x24, 0x08})) << "mov 8(%rsp),%rax";
  EXPECT_TRUE(keeps({0x48, 0x8d, 0x47, 0x10})) << "lea 16(%rdi),%rax, which reads nothing";
  EXPECT_FALSE(keeps({0x48, 0x8b, 0x47, 0x10})) << "mov 16(%rdi),%rax, which may not be there";
  EXPECT_FALSE(keeps({0x31, 0xff})) << "xor %edi,%edi";
  EXPECT_FALSE(keeps({0x31, 0xdb})) << "xor %ebx,%ebx, which is the caller's";
  EXPECT_FALSE(keeps({0x4d, 0x31, 0xd2})) << "xor %r10,%r10, the static chain";
  EXPECT_FALSE(keeps({0x48, 0x83, 0xec, 0x08})) << "sub $8,%rsp";
  EXPECT_FALSE(keeps({0x55})) << "push %rbp";
  EXPECT_FALSE(keeps({0xc7, 0x05, 0, 0, 0, 0, 1, 0, 0, 0})) << "movl $1,0(%rip)";
  EXPECT_FALSE(keeps({0x89, 0x44, 0x24, 0x08})) << "mov %eax,8(%rsp)";
  EXPECT_FALSE(keeps({0x64, 0x48, 0x8b, 0x04, 0x24})) << "mov %fs:(%rsp),%rax";
  EXPECT_FALSE(keeps({0x48, 0xf7, 0xf7})) << "div %rdi, which may trap";
  EXPECT_FALSE(keeps({0x0f, 0x0b})) << "ud2";
  EXPECT_FALSE(keeps({0x0f, 0x05})) << "syscall";
  EXPECT_FALSE(keeps({0xc3})) << "ret";
  EXPECT_FALSE(keeps({0x48})) << "cut";
  const auto keeps32 = [](std::vector<std::uint8_t> code) { return keeps_arguments(Machine::i386, code); };
  EXPECT_TRUE(keeps32({0x83, 0x7c, 0x24, 0x04, 0x00})) << "cmpl $0,4(%esp)";
  EXPECT_FALSE(keeps32({0x8b, 0x44, 0x24, 0x04})) << "mov 4(%esp),%eax: by regparm an argument";
}

TEST(Instructions, of_arm64_that_keep_arguments_write_x9_to_x17_or_flags) {
  const auto keeps = [](std::uint32_t word) {
    const auto byte = [word](unsigned n) { return static_cast<std::uint8_t>(word >> 8 * n); };
    return keeps_arguments(Machine::aarch64, std::vector{byte(0), byte(1), byte(2), byte(3)});
  };
  EXPECT_TRUE(keeps(0xf100001f)) << "cmp x0, #0";
  EXPECT_TRUE(keeps(0xeb01001f)) << "cmp x0, x1";
  EXPECT_TRUE(keeps(0xf240001f)) << "tst x0, #1";
  EXPECT_TRUE(keeps(0xea01001f)) << "tst x0, x1";
  EXPECT_TRUE(keeps(0xaa0003e9)) << "mov x9, x0";
  EXPECT_TRUE(keeps(0x52800030)) << "mov w16, #1";
  EXPECT_FALSE(keeps(0xaa0003e8)) << "mov x8, x0: where a result is to go";
  EXPECT_FALSE(keeps(0xaa0003f3)) << "mov x19, x0: the caller's";
  EXPECT_FALSE(keeps(0xd10083ff)) << "sub sp, sp, #32";
  EXPECT_FALSE(keeps(0xa9be7bfd)) << "stp x29, x30, [sp, #-32]!";
  EXPECT_FALSE(keeps(0xf9400009)) << "ldr x9, [x0]";
  EXPECT_FALSE(keeps(0xd503233f)) << "paciasp";
  EXPECT_FALSE(keeps(0xd65f03c0)) << "ret";
}

TEST(Instructions, of_arm64_say_what_runs_behind_them) {
  expect_arm64(0xd65f03c0, Flow::ret, {}, "ret");
  expect_arm64(0xd65f0080, Flow::ret, {}, "ret x4");
  expect_arm64(0xd65f0bff, Flow::ret, {}, "retaa");
  expect_arm64(0x14000002, Flow::jump, 8, "b .+8");
  expect_arm64(0x17ffffff, Flow::jump, -4, "b .-4");
  expect_arm64(0x97fffffe, Flow::call, -8, "bl .-8");
  expect_arm64(0x54000041, Flow::branch, 8, "b.ne .+8");
  expect_arm64(0x54ffffe9, Flow::branch, -4, "b.ls .-4");
  expect_arm64(0xb4000040, Flow::branch, 8, "cbz x0, .+8");
  expect_arm64(0x35ffffe1, Flow::branch, -4, "cbnz w1, .-4");
  expect_arm64(0x37080040, Flow::branch, 8, "tbnz w0, #1, .+8");
  expect_arm64(0xd61f0200, Flow::jump, {}, "br x16");
  expect_arm64(0xd63f0100, Flow::call, {}, "blr x8");
  expect_arm64(0xd63f0900 | 31, Flow::call, {}, "blraaz x8");
  expect_arm64(0xd503201f, Flow::next, {}, "nop");
}

TEST(Instructions, of_riscv64_say_what_runs_behind_them) {
  constexpr Machine riscv64 = Machine::riscv64;
  expect(riscv64, {0x82, 0x80}, Flow::ret, {}, "ret");
  expect(riscv64, {0x67, 0x80, 0x00, 0x00}, Flow::ret, {}, "ret, not compressed");
  expect(riscv64, {0x82, 0x82}, Flow::jump, {}, "jr t0");
  expect(riscv64, {0x82, 0x87}, Flow::jump, {}, "jr a5");
  expect(riscv64, {0x82, 0x97}, Flow::call, {}, "jalr a5");
  expect(riscv64, {0xe7, 0x80, 0x47, 0x00}, Flow::call, {}, "jalr 4(a5)");
  expect(riscv64, {0x6f, 0x00, 0x40, 0x01}, Flow::jump, 20, "j .+20");
  expect(riscv64, {0x6f, 0xf0, 0xdf, 0xff}, Flow::jump, -4, "j .-4");
  expect(riscv64, {0xef, 0x10, 0x00, 0x00}, Flow::call, 4096, "jal .+4096");
  expect(riscv64, {0xef, 0xf2, 0xff, 0xff}, Flow::call, -2, "jal t0, .-2");
  expect(riscv64, {0x11, 0xa0}, Flow::jump, 4, "c.j .+4");
  expect(riscv64, {0xfd, 0xbf}, Flow::jump, -2, "c.j .-2");
  expect(riscv64, {0x63, 0x04, 0xb5, 0x00}, Flow::branch, 8, "beq a0, a1, .+8");
  expect(riscv64, {0xe3, 0x6e, 0xb5, 0xfe}, Flow::branch, -4, "bltu a0, a1, .-4");
  expect(riscv64, {0x11, 0xc1}, Flow::branch, 4, "c.beqz a0, .+4");
  expect(riscv64, {0x7d, 0xfd}, Flow::branch, -2, "c.bnez a0, .-2");
  expect(riscv64, {0x01, 0x00}, Flow::next, {}, "c.nop");
  expect(riscv64, {0x97, 0x00, 0x00, 0x00}, Flow::next, {}, "auipc ra, 0");
  EXPECT_TRUE(decode_instruction(riscv64, std::vector<std::uint8_t>{0x73, 0, 0, 0}).calls_kernel) << "ecall";
}

TEST(Instructions, of_riscv64_that_keep_arguments_write_temporary_registers) {
  const auto keeps = [](std::vector<std::uint8_t> code) { return keeps_arguments(Machine::riscv64, code); };
  EXPECT_TRUE(keeps({0x01, 0x00})) << "c.nop";
  EXPECT_TRUE(keeps({0x17, 0x00, 0x00, 0x00})) << "lpad";
  EXPECT_TRUE(keeps({0x05, 0x43})) << "li t1, 1";
  EXPECT_TRUE(keeps({0xb3, 0x0e, 0xb5, 0x00})) << "add t4, a0, a1";
  EXPECT_FALSE(keeps({0x41, 0x11})) << "addi sp, sp, -16";
  EXPECT_FALSE(keeps({0xaa, 0x87})) << "mv a5, a0";
  EXPECT_FALSE(keeps({0x97, 0x03, 0x00, 0x00})) << "auipc t2, 0: a nested function's frame";
  EXPECT_FALSE(keeps({0x06, 0xe4})) << "sd ra, 8(sp)";
  EXPECT_FALSE(keeps({0x03, 0x33, 0x05, 0x00})) << "ld t1, 0(a0): may trap";
  EXPECT_FALSE(keeps({0x82, 0x80})) << "ret";
}

TEST(Instructions, of_riscv64_that_jump_by_a_table_add_first) {
  const auto by_distance = [](std::vector<std::uint8_t> code, std::vector<std::size_t> starts) {
    return switch_jump(Machine::riscv64, code, starts).by_distance;
  };
  EXPECT_TRUE(by_distance({0xba, 0x97, 0x82, 0x87}, {0, 2})) << "c.add a5, a4; jr a5";
  EXPECT_TRUE(by_distance({0xb3, 0x07, 0xf7, 0x00, 0x82, 0x87}, {0, 4})) << "add a5, a4, a5; jr a5";
  EXPECT_FALSE(by_distance({0x9c, 0x63, 0x82, 0x87}, {0, 2})) << "ld a5, 0(a5); jr a5";
  EXPECT_FALSE(by_distance({0x3a, 0x97, 0x82, 0x87}, {0, 2})) << "c.add a4, a4; jr a5";
}

TEST(Instructions, that_end_within_one_are_none) {
  const std::vector<std::uint8_t> cut = {0x0f, 0x86, 0xca};
  EXPECT_EQ(decode_instruction(Machine::x86_64, cut).size, 0);
  EXPECT_EQ(decode_instruction(Machine::aarch64, cut).size, 0);
  EXPECT_EQ(decode_instruction(Machine::riscv64, std::vector<std::uint8_t>{0x97, 0x00, 0x00}).size, 0);
  EXPECT_EQ(decode_instruction(Machine::riscv64, std::vector<std::uint8_t>{0x1f, 0, 0, 0, 0, 0}).size, 0) << "6 bytes";
}

}  // namespace
}  // namespace usdt::arch
