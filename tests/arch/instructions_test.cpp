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

TEST(Instructions, that_end_within_one_are_none) {
  const std::vector<std::uint8_t> cut = {0x0f, 0x86, 0xca};
  EXPECT_EQ(decode_instruction(Machine::x86_64, cut).size, 0);
  EXPECT_EQ(decode_instruction(Machine::aarch64, cut).size, 0);
}

}  // namespace
}  // namespace usdt::arch
