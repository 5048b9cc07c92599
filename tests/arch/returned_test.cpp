// SPDX-License-Identifier: BSD-2-Clause
#include "arch/returned.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "arch/instructions.hpp"

namespace usdt::arch {
namespace {

/// "low high", of those that are proven.
std::string proven(const std::vector<std::uint8_t>& code, StackVariables variables = StackVariables::may_be_volatile) {
  const ResultRegisters found = proven_results(Machine::x86_64, code, variables);
  return std::string(found.low ? "low" : "") + (found.high ? " high" : "");
}

class Returned : public testing::Test {
 protected:
  void SetUp() override {
    if (!knows_instructions(Machine::x86_64)) GTEST_SKIP() << "built without zydis";
  }
};

// The bytes are those of GNU as, of the instructions beside them.
TEST_F(Returned, WhatNothingReadsIsForTheCaller) {
  EXPECT_EQ(proven({0x31, 0xc0,              // xor %eax,%eax
                    0x48, 0x83, 0xff, 0x01,  // cmp $1,%rdi
                    0x0f, 0x95, 0xc0,        // setne %al
                    0x8d, 0x57, 0x07,        // lea 7(%rdi),%edx
                    0xc3}),                  // ret
            "low high");
  EXPECT_EQ(proven({0x89, 0xf8,    // mov %edi,%eax
                    0x5b, 0xc3}),  // pop %rbx; ret
            "low");
}

TEST_F(Returned, ExtensionsAndProductsCount) {
  EXPECT_EQ(proven({0x8d, 0x04, 0xbf,        // lea (%rdi,%rdi,4),%eax
                    0x48, 0x98,              // cltq
                    0x48, 0x6b, 0xd7, 0x07,  // imul $7,%rdi,%rdx
                    0xc3}),                  // ret
            "low high");
  EXPECT_EQ(proven({0x89, 0xf8,  // mov %edi,%eax
                    0xf7, 0xee,  // imul %esi: its upper half is in edx, whether wanted or not
                    0x48, 0x98,  // cltq
                    0xc3}),      // ret
            "low");
  EXPECT_EQ(proven({0x99, 0xc3}), "");  // cltd; ret
}

TEST_F(Returned, JumpsAreFollowedOnAllWays) {
  EXPECT_EQ(proven({0xb8, 0x01, 0x00, 0x00, 0x00,  // mov $1,%eax
                    0xeb, 0x02,                    // jmp over
                    0x0f, 0x0b,                    // ud2
                    0x5b, 0xc3}),                  // over: pop %rbx; ret
            "low");
  EXPECT_EQ(proven({0xb8, 0x01, 0x00, 0x00, 0x00,  // mov $1,%eax
                    0x85, 0xff,                    // test %edi,%edi
                    0x74, 0x02,                    // je behind
                    0x89, 0xc3,                    // mov %eax,%ebx
                    0xc3}),                        // behind: ret
            "");
}

TEST_F(Returned, WhatIsUsedOtherwiseProvesNothing) {
  EXPECT_EQ(proven({0x89, 0xf8,  // mov %edi,%eax
                    0x89, 0x06,  // mov %eax,(%rsi)
                    0xc3}),      // ret
            "");
  EXPECT_EQ(proven({0x58, 0xc3}), "");             // pop %rax; ret: makes room
  EXPECT_EQ(proven({0x31, 0xc0,                    // xor %eax,%eax: no vector registers
                    0xe8, 0x00, 0x00, 0x00, 0x00,  // call
                    0xc3}),                        // ret
            "");
  EXPECT_EQ(proven({0x48, 0xf7, 0xe7,  // mul %rdi: rdx comes with it
                    0x48, 0x89, 0xc3,  // mov %rax,%rbx
                    0xc3}),            // ret
            "");
}

TEST_F(Returned, WhatIsReadFromMemoryMayBeVolatileAndProvesNothing) {
  EXPECT_EQ(proven({0x8b, 0x07, 0xc3}), "");        // mov (%rdi),%eax; ret
  EXPECT_EQ(proven({0x0f, 0xb6, 0x07, 0xc3}), "");  // movzbl (%rdi),%eax; ret
  EXPECT_EQ(proven({0x8b, 0x07,                     // mov (%rdi),%eax
                    0xff, 0xc0,                     // inc %eax
                    0xc3}),                         // ret
            "low");
  EXPECT_EQ(proven({0x03, 0x07, 0xc3}), "low");  // add (%rdi),%eax; ret: the sum is deleted, and the read stays a move
}

TEST_F(Returned, WhatRustReadsFromTheStackIsWanted) {
  const std::vector<std::uint8_t> of_stack{0x48, 0x8b, 0x44, 0x24, 0x08, 0xc3};  // mov 8(%rsp),%rax; ret
  EXPECT_EQ(proven(of_stack), "");
  EXPECT_EQ(proven(of_stack, StackVariables::are_not_volatile), "low");
  EXPECT_EQ(proven({0x8b, 0x07, 0xc3}, StackVariables::are_not_volatile), "");  // mov (%rdi),%eax; ret
}

TEST_F(Returned, WhatIsComputedForItsFlagsProvesNothing) {
  EXPECT_EQ(proven({0x09, 0xf0,        // or %esi,%eax
                    0x0f, 0x94, 0xc1,  // sete %cl
                    0xc3}),            // ret
            "");
  EXPECT_EQ(proven({0x09, 0xf0,        // or %esi,%eax
                    0x85, 0xff,        // test %edi,%edi
                    0x0f, 0x94, 0xc1,  // sete %cl
                    0xc3}),            // ret
            "low");
}

TEST_F(Returned, LoopsAndWhatIsNoCodeEnd) {
  EXPECT_EQ(proven({0x89, 0xf8, 0xeb, 0xfe}), "");  // mov %edi,%eax; jmp itself
  EXPECT_EQ(proven({0x89, 0xf8, 0x06, 0xc3}), "");  // mov %edi,%eax; no instruction
  EXPECT_EQ(proven({0x89, 0xf8}), "");              // ends without a return
  EXPECT_EQ(proven({}), "");
  std::vector<std::uint8_t> many(1U << 16, 0x90);
  for (std::size_t i = 0; i + 2 < many.size(); i += 2) many[i] = 0x89, many[i + 1] = 0xf8;
  EXPECT_EQ(proven(many), "");
}

}  // namespace
}  // namespace usdt::arch
