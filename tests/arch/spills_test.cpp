// SPDX-License-Identifier: BSD-2-Clause
#include "arch/spills.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "arch/instructions.hpp"

namespace usdt::arch {
namespace {

/// "-8:8=rdi -12:1=rsi", "?" for what is no argument any more.
std::string spills_of(const std::vector<std::uint8_t>& code) {
  const Arch& arch = for_machine(Machine::x86_64);
  std::string text;
  for (const Spill& each : first_spills(arch, code)) {
    const std::string_view reg = each.reg == RegisterId::none ? "?" : arch.reg(each.reg).name;
    text += fmt::format("{}{}:{}={}", text.empty() ? "" : " ", each.at, each.size, reg);
  }
  return text;
}

class Spills : public testing::Test {
 protected:
  void SetUp() override {
    if (!knows_instructions(Machine::x86_64)) GTEST_SKIP() << "built without zydis";
  }
};

// The bytes are those of GNU as, of the instructions beside them.
TEST_F(Spills, TellWhichRegisterIsStoredWhere) {
  EXPECT_EQ(spills_of({0x55,                      // push %rbp
                       0x48, 0x89, 0xe5,          // mov %rsp,%rbp
                       0x48, 0x83, 0xec, 0x10,    // sub $16,%rsp
                       0x89, 0x7d, 0xfc,          // mov %edi,-4(%rbp)
                       0x48, 0x89, 0x75, 0xf0}),  // mov %rsi,-16(%rbp)
            "-12:4=rdi -24:8=rsi");
}

TEST_F(Spills, APushIsNone) {
  EXPECT_EQ(spills_of({0x50,                      // push %rax
                       0x48, 0x89, 0x3c, 0x24}),  // mov %rdi,(%rsp)
            "-8:8=rdi");
}

TEST_F(Spills, CopiesAndReloadsAreFollowed) {
  EXPECT_EQ(spills_of({0x48, 0x83, 0xec, 0x28,          // sub $0x28,%rsp
                       0x48, 0x89, 0x54, 0x24, 0x08,    // mov %rdx,8(%rsp)
                       0x89, 0xf0,                      // mov %esi,%eax
                       0x48, 0x8b, 0x74, 0x24, 0x08,    // mov 8(%rsp),%rsi
                       0x89, 0x7c, 0x24, 0x18,          // mov %edi,0x18(%rsp)
                       0x88, 0x44, 0x24, 0x1c,          // mov %al,0x1c(%rsp)
                       0x48, 0x89, 0x74, 0x24, 0x20}),  // mov %rsi,0x20(%rsp)
            "-32:8=rdx -16:4=rdi -12:1=rsi -8:8=rdx");
}

TEST_F(Spills, WhatWasChangedIsNoArgument) {
  EXPECT_EQ(spills_of({0xbf, 0x01, 0x00, 0x00, 0x00,    // mov $1,%edi
                       0x48, 0xff, 0xc6,                // inc %rsi
                       0x48, 0x89, 0x7c, 0x24, 0xf8,    // mov %rdi,-8(%rsp)
                       0x48, 0x89, 0x74, 0x24, 0xf0,    // mov %rsi,-16(%rsp)
                       0x48, 0x89, 0x54, 0x24, 0xe8}),  // mov %rdx,-24(%rsp)
            "-8:8=? -16:8=? -24:8=rdx");
}

TEST_F(Spills, NothingBehindAJumpOrCallCounts) {
  EXPECT_EQ(spills_of({0x74, 0x00,                      // je behind it
                       0x48, 0x89, 0x7c, 0x24, 0xf8}),  // mov %rdi,-8(%rsp)
            "");
  EXPECT_EQ(spills_of({0xe8, 0x00, 0x00, 0x00, 0x00,    // call
                       0x48, 0x89, 0x7c, 0x24, 0xf8}),  // mov %rdi,-8(%rsp)
            "");
  EXPECT_EQ(spills_of({0x48, 0x83, 0xe4, 0xe0,          // and $-32,%rsp
                       0x48, 0x89, 0x7c, 0x24, 0xf8}),  // mov %rdi,-8(%rsp)
            "");
}

TEST_F(Spills, AnAddressInTheFrameIsAPlaceInIt) {
  EXPECT_EQ(spills_of({0x48, 0x8d, 0x44, 0x24, 0xf0,    // lea -16(%rsp),%rax
                       0x48, 0x89, 0x38,                // mov %rdi,(%rax)
                       0x48, 0x83, 0xc0, 0x08,          // add $8,%rax
                       0x48, 0x89, 0x74, 0x24, 0xf8}),  // mov %rsi,-8(%rsp)
            "-16:8=rdi");
}

TEST_F(Spills, WhatIsCopiedFromBehindAPointerIsTold) {
  const std::vector<std::uint8_t> code = {0x48, 0x8b, 0x01,               // mov (%rcx),%rax
                                          0x48, 0x89, 0x44, 0x24, 0xf8,   // mov %rax,-8(%rsp)
                                          0x48, 0x8b, 0x44, 0x24, 0x08,   // mov 8(%rsp),%rax
                                          0x48, 0x89, 0x44, 0x24, 0xf0};  // mov %rax,-16(%rsp)
  const std::vector<Spill> spills = first_spills(for_machine(Machine::x86_64), code);
  ASSERT_EQ(spills.size(), 2U);
  EXPECT_TRUE(spills[0].from_memory);
  EXPECT_FALSE(spills[1].from_memory);
}

/// "rdi r12 xmm8".
std::string uses_of(const std::vector<std::uint8_t>& code) {
  const Arch& arch = for_machine(Machine::x86_64);
  std::string text;
  for (const RegisterId each : first_uses(arch, code))
    text += fmt::format("{}{}", text.empty() ? "" : " ", arch.reg(each).name);
  return text;
}

TEST_F(Spills, UsesAreOfWhatIsNotSetBefore) {
  EXPECT_EQ(uses_of({0x45, 0x01, 0xee,        // add %r13d,%r14d
                     0x43, 0x8d, 0x04, 0x26,  // lea (%r14,%r12,1),%eax
                     0xb9, 0x01, 0, 0, 0,     // mov $1,%ecx
                     0x01, 0xca}),            // add %ecx,%edx
            "rdx r12 r13 r14");
  EXPECT_EQ(uses_of({0x48, 0x8b, 0x01}), "rcx");  // mov (%rcx),%rax
}

TEST_F(Spills, SavesAreNoUses) {
  EXPECT_EQ(uses_of({0x53,                            // push %rbx
                     0x51,                            // push %rcx
                     0x4c, 0x89, 0x64, 0x24, 0xf8}),  // mov %r12,-8(%rsp)
            "");
  EXPECT_EQ(uses_of({0x44, 0x89, 0x64, 0x24, 0xf8}), "r12");   // mov %r12d,-8(%rsp)
  EXPECT_EQ(uses_of({0x44, 0x0f, 0x29, 0x04, 0x24}), "xmm8");  // movaps %xmm8,(%rsp)
  EXPECT_EQ(uses_of({0x66, 0x45, 0x0f, 0xef, 0xc0,             // pxor %xmm8,%xmm8
                     0x44, 0x0f, 0x29, 0x04, 0x24}),
            "");  // movaps %xmm8,(%rsp)
}

TEST_F(Spills, WhatSetsARegisterWhateverItWasIsNoUse) {
  EXPECT_EQ(uses_of({0x31, 0xc9,                    // xor %ecx,%ecx
                     0x19, 0xd2,                    // sbb %edx,%edx
                     0x48, 0x83, 0xce, 0xff,        // or $-1,%rsi
                     0x0f, 0x1f, 0x44, 0x0f, 0x00,  // nopl 0(%rdi,%rcx,1)
                     0xf3, 0x0f, 0x1e, 0xfa}),      // endbr64
            "");
}

TEST_F(Spills, NoUsesAreSeenBehindAJumpOrCall) {
  EXPECT_EQ(uses_of({0x74, 0x00, 0x48, 0x8b, 0x01}), "");        // je; mov (%rcx),%rax
  EXPECT_EQ(uses_of({0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0x01}), "");  // call; mov (%rcx),%rax
}

}  // namespace
}  // namespace usdt::arch
