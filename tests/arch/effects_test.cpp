// SPDX-License-Identifier: BSD-2-Clause
// Encodings as GNU as makes them.
#include "arch/effects.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace usdt::arch {
namespace {

// DWARF numbers of x86-64.
constexpr std::uint8_t kAx = 0, kDx = 1, kBx = 3, kSi = 4, kDi = 5, kBp = 6, kSp = 7;

Effects effects(std::vector<std::uint8_t> code, Machine machine = Machine::x86_64) {
  const std::size_t size = code.size();
  code.resize(size + 4, 0x90);
  const auto found = effects_of(machine, code);
  EXPECT_TRUE(found);
  EXPECT_EQ(found.value_or(Effects()).code.size, size);
  return found.value_or(Effects());
}

void expect_access(const Effects& of, std::uint8_t base, std::int64_t displacement, std::uint32_t size, bool reads,
                   bool writes, const char* what) {
  ASSERT_TRUE(of.accesses[0]) << what;
  EXPECT_EQ(of.accesses[0]->base, base) << what;
  EXPECT_EQ(of.accesses[0]->displacement, displacement) << what;
  EXPECT_EQ(of.accesses[0]->size, size) << what;
  EXPECT_EQ(of.accesses[0]->reads, reads) << what;
  EXPECT_EQ(of.accesses[0]->writes, writes) << what;
}

TEST(Effects, are_the_memory_that_an_instruction_reads_or_writes) {
  if (!knows_instructions(Machine::x86_64)) GTEST_SKIP() << "a build without zydis";
  expect_access(effects({0x8b, 0x47, 0x08}), kDi, 8, 4, true, false, "mov 0x8(%rdi),%eax");
  expect_access(effects({0x0f, 0xbe, 0x55, 0xfb}), kBp, -5, 1, true, false, "movsbl -0x5(%rbp),%edx");
  expect_access(effects({0x48, 0x89, 0x44, 0x24, 0x10}), kSp, 16, 8, false, true, "mov %rax,0x10(%rsp)");
  expect_access(effects({0x0f, 0x29, 0x45, 0xc0}), kBp, -64, 16, false, true, "movaps %xmm0,-0x40(%rbp)");
  expect_access(effects({0x83, 0x47, 0x04, 0x01}), kDi, 4, 4, true, true, "addl $0x1,0x4(%rdi)");
  expect_access(effects({0x48, 0x8d, 0x7c, 0x24, 0x20}), kSp, 32, 8, false, false, "lea 0x20(%rsp),%rdi");
  EXPECT_FALSE(effects({0x48, 0x8b, 0x05, 0x10, 0x00, 0x00, 0x00}).accesses[0]) << "mov 0x10(%rip),%rax";
  const Effects indexed = effects({0x8b, 0x04, 0xb7});  // mov (%rdi,%rsi,4),%eax
  EXPECT_TRUE(indexed.accesses[0] && indexed.accesses[0]->indexed && indexed.accesses[0]->base == kDi);
  EXPECT_FALSE(effects({0x64, 0x8b, 0x47, 0x08}).accesses[0]) << "mov %fs:0x8(%rdi),%eax";
  expect_access(effects({0x8b, 0x44, 0x24, 0x08}, Machine::i386), 4, 8, 4, true, false, "mov 0x8(%esp),%eax");
}

TEST(Effects, are_the_registers_that_change_and_what_is_copied) {
  if (!knows_instructions(Machine::x86_64)) GTEST_SKIP() << "a build without zydis";
  const Effects moved = effects({0x48, 0x89, 0xfb});  // mov %rdi,%rbx
  EXPECT_EQ(moved.changed, 1U << kBx);
  ASSERT_TRUE(moved.copies);
  EXPECT_EQ(moved.copies->to, kBx);
  EXPECT_EQ(moved.copies->from, kDi);
  const Effects further = effects({0x48, 0x8d, 0x46, 0x08});  // lea 0x8(%rsi),%rax
  ASSERT_TRUE(further.copies);
  EXPECT_EQ(further.copies->from, kSi);
  EXPECT_EQ(further.copies->displacement, 8);
  const Effects added = effects({0x48, 0x83, 0xc3, 0x08});  // add $0x8,%rbx
  ASSERT_TRUE(added.copies);
  EXPECT_EQ(added.copies->from, kBx);
  EXPECT_EQ(added.copies->displacement, 8);
  EXPECT_EQ(effects({0x48, 0x8b, 0x07}).loads, kAx) << "mov (%rdi),%rax";
  EXPECT_FALSE(effects({0x8b, 0x07}).loads) << "mov (%rdi),%eax is no whole word";
  EXPECT_EQ(effects({0x48, 0x89, 0x7c, 0x24, 0x08}).stores, kDi) << "mov %rdi,0x8(%rsp)";
  EXPECT_FALSE(effects({0x89, 0xfb}).copies) << "mov %edi,%ebx";
  EXPECT_EQ(effects({0x99}).changed & 1U << kDx, 1U << kDx) << "cltd";
  EXPECT_EQ(effects({0xe8, 0, 0, 0, 0}).changed, 0U) << "call";
}

TEST(Effects, of_push_and_pop_are_on_the_stack) {
  if (!knows_instructions(Machine::x86_64)) GTEST_SKIP() << "a build without zydis";
  const Effects pushed = effects({0x53});  // push %rbx
  expect_access(pushed, kSp, -8, 8, false, true, "push %rbx");
  EXPECT_EQ(pushed.stores, kBx);
  EXPECT_EQ(pushed.stack, -8);
  const Effects popped = effects({0x5b});  // pop %rbx
  expect_access(popped, kSp, 0, 8, true, false, "pop %rbx");
  EXPECT_EQ(popped.loads, kBx);
  EXPECT_EQ(popped.stack, 8);
  const Effects copied = effects({0xff, 0x76, 0x08});  // pushq 0x8(%rsi)
  expect_access(copied, kSi, 8, 8, true, false, "pushq 0x8(%rsi)");
  EXPECT_FALSE(copied.stores);
  EXPECT_EQ(copied.stack, -8);
  EXPECT_EQ(effects({0x6a, 0x02}).stack, -8) << "pushq $0x2";
  EXPECT_EQ(effects({0x50}, Machine::i386).stack, -4) << "push %eax";
  EXPECT_EQ(effects({0x48, 0x83, 0xec, 0x08}).stack, 0) << "sub $0x8,%rsp is a sum of registers";
}

TEST(Effects, of_other_machines_are_not_known) {
  EXPECT_FALSE(effects_of(Machine::aarch64, std::vector<std::uint8_t>{0x1f, 0x20, 0x03, 0xd5}));
}

}  // namespace
}  // namespace usdt::arch
