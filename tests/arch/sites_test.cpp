// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "arch/arch.hpp"

namespace usdt::arch {
namespace {

SiteClass classify(Machine machine, std::initializer_list<int> bytes) {
  return classify_site(machine, std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
}
SiteClass x86_64(std::initializer_list<int> bytes) { return classify(Machine::x86_64, bytes); }
SiteClass i386(std::initializer_list<int> bytes) { return classify(Machine::i386, bytes); }
SiteClass aarch64(std::uint32_t code) {
  const std::uint8_t bytes[] = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(code >> 8),
                                static_cast<std::uint8_t>(code >> 16), static_cast<std::uint8_t>(code >> 24)};
  return classify_site(Machine::aarch64, bytes);
}

TEST(SiteClasses, OfX8664TellTheNopPairsApart) {
  EXPECT_EQ(x86_64({0x90, 0x48, 0x89, 0xc3}), SiteClass::nop);
  EXPECT_EQ(x86_64({0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3}), SiteClass::nop_nop5);
  EXPECT_EQ(x86_64({0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}), SiteClass::nop_nop10);
  EXPECT_EQ(x86_64({0x0f, 0x1f, 0x44, 0x00, 0x00}), SiteClass::nop5);
  EXPECT_EQ(x86_64({0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}), SiteClass::nop10);
}

TEST(SiteClasses, NeedEveryByteOfAPair) {
  EXPECT_EQ(x86_64({0x90, 0x0f, 0x1f, 0x44, 0x00}), SiteClass::nop) << "cut off by the segment's end";
  EXPECT_EQ(x86_64({0x90, 0x0f, 0x1f, 0x44, 0x00, 0x01}), SiteClass::nop) << "another displacement";
  EXPECT_EQ(x86_64({0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0}), SiteClass::nop);
  EXPECT_EQ(x86_64({0x90}), SiteClass::nop);
  EXPECT_EQ(x86_64({}), SiteClass::unknown);
}

TEST(SiteClasses, OfX8664KnowWhatTheKernelEmulates) {
  for (const auto& bytes : std::initializer_list<std::initializer_list<int>>{{0x66, 0x90},
                                                                             {0x0f, 0x1f, 0x00},
                                                                             {0x0f, 0x1f, 0x40, 0x00},
                                                                             {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
                                                                             {0x0f, 0x1f, 0x80, 0, 0, 0, 0},
                                                                             {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
                                                                             {0x66, 0x66, 0x0f, 0x1f, 0x84},
                                                                             {0x50},
                                                                             {0x57},
                                                                             {0x41, 0x54},
                                                                             {0xeb, 0x05},
                                                                             {0xe9, 1, 0, 0, 0},
                                                                             {0xe8, 1, 0, 0, 0},
                                                                             {0x74, 0x10},
                                                                             {0x0f, 0x84, 1, 0, 0, 0}}) {
    EXPECT_EQ(x86_64(bytes), SiteClass::emulated) << std::hex << *bytes.begin();
  }
}

TEST(SiteClasses, OfX8664CallTheRestSingleStepped) {
  for (const auto& bytes : std::initializer_list<std::initializer_list<int>>{{0xf3, 0x0f, 0x1e, 0xfa},
                                                                             {0x48, 0x89, 0xe5},
                                                                             {0xc3},
                                                                             {0x58},
                                                                             {0x48, 0x55},
                                                                             {0x41, 0x58},
                                                                             {0x0f, 0x1f, 0x48, 0x00},
                                                                             {0xe3, 0x00},
                                                                             {0x66, 0xe9, 0, 0},
                                                                             {0x41}}) {
    EXPECT_EQ(x86_64(bytes), SiteClass::single_step) << std::hex << *bytes.begin();
  }
}

TEST(SiteClasses, OfI386HaveNoOptimisedNopsAndNoRexPrefix) {
  EXPECT_EQ(i386({0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00}), SiteClass::nop);
  EXPECT_EQ(i386({0x0f, 0x1f, 0x44, 0x00, 0x00}), SiteClass::emulated);
  EXPECT_EQ(i386({0x55}), SiteClass::emulated);
  EXPECT_EQ(i386({0x41, 0x55}), SiteClass::single_step) << "inc %ecx";
}

TEST(SiteClasses, OfArm64KnowWhatTheKernelSimulates) {
  EXPECT_EQ(aarch64(0xd503201f), SiteClass::nop);
  for (const std::uint32_t code : {0x54000041U, 0xb4000040U, 0x35000040U, 0x36000040U, 0xb7000040U, 0x10000000U,
                                   0x90000000U, 0x14000001U, 0x94000001U, 0xd61f0200U, 0xd63f0100U, 0xd65f03c0U}) {
    EXPECT_EQ(aarch64(code), SiteClass::emulated) << std::hex << code;
  }
  for (const std::uint32_t code : {0xd503233fU /* paciasp */, 0xaa0003e1U /* mov x1, x0 */, 0xf9400000U /* ldr */,
                                   0x58000000U /* ldr literal */, 0xd4200000U /* brk */}) {
    EXPECT_EQ(aarch64(code), SiteClass::single_step) << std::hex << code;
  }
}

}  // namespace
}  // namespace usdt::arch
