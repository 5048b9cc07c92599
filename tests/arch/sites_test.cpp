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

TEST(SiteClasses, of_x86_64_tell_the_nop_pairs_apart) {
  EXPECT_EQ(x86_64({0x90, 0x48, 0x89, 0xc3}), SiteClass::nop);
  EXPECT_EQ(x86_64({0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3}), SiteClass::nop_nop5);
  EXPECT_EQ(x86_64({0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}), SiteClass::nop_nop10);
  EXPECT_EQ(x86_64({0x0f, 0x1f, 0x44, 0x00, 0x00}), SiteClass::nop5);
  EXPECT_EQ(x86_64({0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}), SiteClass::nop10);
}

TEST(SiteClasses, need_every_byte_of_a_pair) {
  EXPECT_EQ(x86_64({0x90, 0x0f, 0x1f, 0x44, 0x00}), SiteClass::nop) << "cut off by the segment's end";
  EXPECT_EQ(x86_64({0x90, 0x0f, 0x1f, 0x44, 0x00, 0x01}), SiteClass::nop) << "another displacement";
  EXPECT_EQ(x86_64({0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0}), SiteClass::nop);
  EXPECT_EQ(x86_64({0x90}), SiteClass::nop);
  EXPECT_EQ(x86_64({}), SiteClass::unknown);
}

TEST(SiteClasses, of_x86_64_know_what_the_kernel_emulates) {
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

TEST(SiteClasses, of_x86_64_call_the_rest_single_stepped) {
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

TEST(SiteClasses, of_i386_have_no_optimised_nops_and_no_rex_prefix) {
  EXPECT_EQ(i386({0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00}), SiteClass::nop);
  EXPECT_EQ(i386({0x0f, 0x1f, 0x44, 0x00, 0x00}), SiteClass::emulated);
  EXPECT_EQ(i386({0x55}), SiteClass::emulated);
  EXPECT_EQ(i386({0x41, 0x55}), SiteClass::single_step) << "inc %ecx";
}

TEST(SiteClasses, of_arm64_know_what_the_kernel_simulates) {
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

using Code = std::vector<std::uint8_t>;

TEST(SiteClasses, of_riscv64_know_what_the_kernel_simulates) {
  for (const Code& code : {Code{0x6f, 0x00, 0x40, 0x00} /* j */,
                           {0xe7, 0x80, 0x00, 0x00} /* jalr */,
                           {0x82, 0x80} /* ret */,
                           {0x17, 0x05, 0x00, 0x00} /* auipc */,
                           {0x63, 0x04, 0xb5, 0x00} /* beq */,
                           {0x09, 0xa0} /* c.j */,
                           {0x82, 0x97} /* c.jalr a5 */,
                           {0x01, 0xc1} /* c.beqz */,
                           {0x01, 0xe1} /* c.bnez */})
    EXPECT_EQ(classify_site(Machine::riscv64, code), SiteClass::emulated) << std::hex << int{code[0]};
  for (const Code& code : {Code{0x01, 0x00} /* c.nop */,
                           {0x13, 0x00, 0x00, 0x00} /* nop */,
                           {0x02, 0x90} /* c.ebreak */,
                           {0x41, 0x11} /* addi sp, sp, -16 */,
                           {0xaa, 0x87} /* mv a5, a0 */})
    EXPECT_EQ(classify_site(Machine::riscv64, code), SiteClass::single_step) << std::hex << int{code[0]};
}

bool taken(Machine machine, const std::vector<std::uint8_t>& bytes) { return uprobe_refusal(machine, bytes).empty(); }

TEST(Uprobes, on_x86_64_are_taken_on_what_compilers_put_there) {
  for (const std::vector<std::uint8_t>& bytes : {std::vector<std::uint8_t>{0x90},
                                                 {0x0f, 0x1f, 0x44, 0x00, 0x00},
                                                 {0xf3, 0x0f, 0x1e, 0xfa},              // endbr64
                                                 {0x55},                                // push %rbp
                                                 {0x48, 0x89, 0xe5},                    // mov %rsp,%rbp
                                                 {0x64, 0x48, 0x8b, 0x04, 0x25},        // mov %fs:...,%rax
                                                 {0xc5, 0xf8, 0x57, 0xc0},              // vxorps %xmm0,%xmm0,%xmm0
                                                 {0xc5, 0xf8, 0x29, 0x04, 0x24},        // vmovaps %xmm0,(%rsp)
                                                 {0x62, 0xf1, 0x7c, 0x48, 0x10, 0x07},  // vmovups (%rdi),%zmm0
                                                 {0x8f, 0xc0}}) {                       // pop %rax
    EXPECT_TRUE(taken(Machine::x86_64, bytes)) << std::hex << int{bytes[0]};
  }
}

TEST(Uprobes, on_x86_64_are_refused_with_the_reason) {
  struct Row {
    std::vector<std::uint8_t> bytes;
    std::string_view reason;
  };
  for (const Row& row : {Row{{0xcc}, "breakpoint"},
                         {{0xf0, 0x48, 0xff, 0x00}, "lock"},                   // lock incq (%rax)
                         {{0x2e, 0x90}, "segment"},                            // cs nop
                         {{0xc5, 0xf9, 0xd4, 0xc1}, "VEX"},                    // vpaddq %xmm1,%xmm0,%xmm0
                         {{0xc5, 0xfd, 0x6f, 0x07}, "VEX"},                    // vmovdqa (%rdi),%ymm0
                         {{0x62, 0xf1, 0xfd, 0x48, 0x6f, 0x07}, "EVEX"},       // vmovdqa64 (%rdi),%zmm0
                         {{0xc5, 0xf9, 0x70, 0xc1, 0x1b}, "as a jump"},        // vpshufd $27,%xmm1,%xmm0
                         {{0xc5, 0xf9, 0x7f, 0x07}, "as a jump"},              // vmovdqa %xmm0,(%rdi)
                         {{0xc5, 0xf8, 0x77}, "as a jump"},                    // vzeroupper
                         {{0xc5, 0xf1, 0xeb, 0xc0}, "as a jump"},              // vpor %xmm0,%xmm1,%xmm0
                         {{0xc5, 0xf8, 0xc2, 0xc1, 0x00}, "a return"},         // vcmpeqps %xmm1,%xmm0,%xmm0
                         {{0x62, 0xe2, 0x7d, 0x28, 0x7a, 0xce}, "as a jump"},  // vpbroadcastb %esi,%ymm17
                         {{0xc4, 0xe3, 0x79, 0x69, 0xc0, 0x10}, "FMA4"},       // vfmaddpd
                         {{0x8f, 0xe9, 0x78, 0x9a, 0xc0}, "XOP"},              // vpshad
                         {{0xf2, 0x0f, 0x79, 0xc1}, "SSE4a"},
                         {{0x8e, 0xd0}, "stack segment"},       // mov %eax,%ss
                         {{0x66, 0xe9, 0x00, 0x00}, "16-bit"},  // jmpw
                         {{0xf4}, "opcode"},                    // hlt
                         {{0x9c}, "trap flag"},                 // pushf
                         {{0x66, 0x9c}, "trap flag"},
                         {{0x0f, 0x05}, "system call"},  // syscall
                         {{0x0f, 0x34}, "system call"},  // sysenter
                         {{0xcd, 0x80}, "opcode"},       // int $0x80
                         {{0x48, 0xcf}, "opcode"}}) {    // iretq
    EXPECT_NE(uprobe_refusal(Machine::x86_64, row.bytes).find(row.reason), std::string_view::npos) << row.reason;
  }
}

TEST(Uprobes, on_i386_know_no_rex_prefix_and_lds_beside_vex) {
  EXPECT_TRUE(taken(Machine::i386, {0xc5, 0x01}));               // lds (%ecx),%eax
  EXPECT_TRUE(taken(Machine::i386, {0xc5, 0xf9, 0xd4, 0xc1}));   // vpaddq: d4 is aam
  EXPECT_FALSE(taken(Machine::i386, {0xc5, 0xfd, 0x6f, 0x07}));  // vmovdqa
  EXPECT_TRUE(taken(Machine::i386, {0x06}));                     // push %es
  EXPECT_FALSE(taken(Machine::i386, {0x17}));                    // pop %ss
  EXPECT_TRUE(taken(Machine::i386, {0xd5, 0x0a}));               // aad
  EXPECT_FALSE(taken(Machine::i386, {0x9c}));                    // pushf
  EXPECT_FALSE(taken(Machine::i386, {0x0f, 0x34}));              // sysenter
}

TEST(Uprobes, are_not_refused_for_bytes_that_are_not_there) {
  EXPECT_TRUE(taken(Machine::x86_64, {}));
  EXPECT_TRUE(taken(Machine::x86_64, {0x66}));
  EXPECT_TRUE(taken(Machine::x86_64, {0xc5, 0xf9}));
  EXPECT_TRUE(taken(Machine::aarch64, {0x00, 0x00, 0x00}));
}

bool arm_takes(std::uint32_t code) {
  return taken(Machine::aarch64, {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(code >> 8),
                                  static_cast<std::uint8_t>(code >> 16), static_cast<std::uint8_t>(code >> 24)});
}

TEST(Uprobes, on_arm64_are_taken_on_what_is_stepped_or_simulated) {
  for (const std::uint32_t code :
       {0xd503201fU /* nop */, 0xd503233fU /* paciasp */, 0xd503245fU /* bti c */, 0xaa0003e1U /* mov x1, x0 */,
        0xf9400000U /* ldr x0, [x0] */, 0x90000000U /* adrp */, 0x54000041U /* b.ne */, 0xd65f03c0U /* ret */,
        0x94000001U /* bl */, 0xa9bf7bfdU /* stp x29, x30, [sp, -16]! */, 0xd53bd040U /* mrs x0, tpidr_el0 */,
        0x88dffc00U /* ldar */, 0xd5033bbfU /* dmb ish */}) {
    EXPECT_TRUE(arm_takes(code)) << std::hex << code;
  }
}

TEST(Uprobes, on_arm64_are_refused_where_stepping_goes_wrong) {
  for (const std::uint32_t code :
       {0x58000000U /* ldr x0, literal */, 0x1c000000U /* ldr s0, literal */, 0x98000000U /* ldrsw */,
        0xd8000000U /* prfm literal */, 0x885ffc00U /* ldaxr */, 0x8800fc00U /* stlxr */, 0xd4000001U /* svc */,
        0xd4200000U /* brk */, 0xd51bd040U /* msr tpidr_el0, x0 */, 0xd53b4220U /* mrs x0, daif */,
        0xd503203fU /* yield */, 0xd503205fU /* wfe */, 0xd50323bfU /* autiasp */, 0xd65f0bffU /* retaa */,
        0xd73f0800U /* blraa */, 0xd69f03e0U /* eret */}) {
    EXPECT_FALSE(arm_takes(code)) << std::hex << code;
  }
}

TEST(Uprobes, on_riscv64_are_refused_where_the_kernel_does_or_a_reservation_ends) {
  for (const Code& code : {Code{0x01, 0x00} /* c.nop */,
                           {0x82, 0x80} /* ret */,
                           {0x17, 0x05, 0x00, 0x00} /* auipc */,
                           {0x2f, 0xa5, 0xb5, 0x00} /* amoadd.w */,
                           {0x03, 0x35, 0x05, 0x00} /* ld */,
                           {0x73} /* cut */})
    EXPECT_TRUE(taken(Machine::riscv64, code)) << std::hex << int{code[0]};
  for (const Code& code : {Code{0x73, 0x00, 0x00, 0x00} /* ecall */,
                           {0x73, 0x00, 0x10, 0x00} /* ebreak */,
                           {0x73, 0x25, 0x00, 0xc0} /* rdcycle */,
                           {0x0f, 0x00, 0xf0, 0x0f} /* fence */,
                           {0x0f, 0x10, 0x00, 0x00} /* fence.i */,
                           {0x02, 0x90} /* c.ebreak */,
                           {0x2f, 0xa5, 0x05, 0x10} /* lr.w */,
                           {0x2f, 0xb5, 0xc5, 0x18} /* sc.d */})
    EXPECT_FALSE(taken(Machine::riscv64, code)) << std::hex << int{code[0]};
}

}  // namespace
}  // namespace usdt::arch
