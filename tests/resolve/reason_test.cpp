// SPDX-License-Identifier: BSD-2-Clause
// Arguments without a value: the reason, its column, and that nothing is encoded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_task.hpp"
#include "resolve/resolver.hpp"
#include "usdt/decode.hpp"

namespace usdt {
namespace {

using testing::HasSubstr;

struct Refusal {
  Machine machine;
  std::string_view text;
  std::string_view reason;  ///< part of it
  std::uint32_t column = 0;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.text; }

class UnreadableOperand : public testing::TestWithParam<Refusal> {};

TEST_P(UnreadableOperand, says_why_and_where) {
  const Refusal& refusal = GetParam();
  const test::Resolved resolved = test::resolve_text(refusal.text, refusal.machine);
  EXPECT_FALSE(resolved.arg.readable());
  EXPECT_THAT(resolved.arg.why_unreadable(), HasSubstr(std::string(refusal.reason)));
  EXPECT_EQ(std::get<usdt::Unreadable>(resolved.arg.location).column, refusal.column);
  EXPECT_EQ(resolved.encoded.kind, USDT_ARG_UNREADABLE);
  EXPECT_EQ(resolved.encoded.reg, USDT_REG_NONE);
}

constexpr auto kX64 = Machine::x86_64;
constexpr auto kX32 = Machine::i386;
constexpr auto kArm = Machine::aarch64;

INSTANTIATE_TEST_SUITE_P(
    Registers, UnreadableOperand,
    testing::Values(Refusal{kX64, "8@%foo", "no register 'foo' on x86_64", 3},
                    Refusal{kX32, "4@%r10d", "no register 'r10d' on i386", 3},
                    Refusal{kX64, "8@%xmm0", "in vector register xmm0, which the kernel does not hand to probes", 3},
                    Refusal{kArm, "8f@d0", "in vector register d0", 3},
                    Refusal{kX64, "2@%fs", "in segment register fs", 3},
                    Refusal{kX64, "8@%eax", "8 bytes do not fit the 32-bit register eax", 3},
                    Refusal{kX64, "2@%ah", "2 bytes do not fit the 8-bit register ah", 3},
                    Refusal{kArm, "8@w3", "8 bytes do not fit the 32-bit register w3", 2},
                    Refusal{kX32, "8@%ebp", "8 bytes do not fit the 32-bit register ebp", 3},
                    Refusal{kX32, "8@%ax", "8 bytes do not fit the 16-bit register ax", 3},
                    Refusal{kX32, "8@%esi", "its other half is in edi if GCC made this code", 3}));

INSTANTIATE_TEST_SUITE_P(
    Sizes, UnreadableOperand,
    testing::Values(Refusal{kX64, "24@(%rsp)", "24-byte value"}, Refusal{kX64, "3@(%rsp)", "3-byte value"},
                    Refusal{kX64, "16@$1", "16-byte value"}, Refusal{kArm, "16@[sp, 8]", "16-byte value"},
                    Refusal{kX64, "2f@%ax", "2-byte float"}, Refusal{kX64, "16f@(%rsp)", "16-byte float"}));

INSTANTIATE_TEST_SUITE_P(
    Addresses, UnreadableOperand,
    testing::Values(Refusal{kX64, "8@(%nope)", "no register 'nope'", 4},
                    Refusal{kX64, "8@(%rax,%nope,8)", "no register 'nope'", 9},
                    Refusal{kX64, "8@(%xmm0)", "register xmm0 cannot address memory", 4},
                    Refusal{kX64, "8@(%ax)", "16-bit register ax cannot address memory", 4},
                    Refusal{kX64, "8@(%rax,%ecx)", "base rax and index ecx differ in width", 9},
                    Refusal{kX64, "8@(%rax,%rsp)", "the stack pointer cannot be an index", 9},
                    Refusal{kX64, "8@16(%rip)", "relative to the instruction pointer without a symbol", 6},
                    Refusal{kX32, "4@8(%eip)", "register eip cannot address memory", 5},
                    Refusal{kX64, "8@%gs:16", "in segment %gs, which is not the thread's on x86_64", 3},
                    Refusal{kX32, "4@%fs:(%eax)", "in segment %fs, which is not the thread's on i386", 3},
                    Refusal{kX64, "8@%fs:(%eax)", "32-bit address register in segment %fs", 3},
                    Refusal{kX64, "8@%fs:16(%rip)", "relative to the instruction pointer", 10},
                    Refusal{kArm, "8@[w0]", "register w0 cannot be a base", 3},
                    Refusal{kArm, "8@[xzr, 8]", "register xzr cannot be a base", 3},
                    Refusal{kArm, "8@[x0, w1]", "32-bit index w1 without uxtw or sxtw", 7},
                    Refusal{kArm, "8@[x0, x1, sxtw 3]", "64-bit index x1 with a 32-bit extension", 7},
                    Refusal{kArm, "8@[x0, sp]", "register sp cannot be an index", 7}));

INSTANTIATE_TEST_SUITE_P(
    Symbols, UnreadableOperand,
    testing::Values(Refusal{kX64, "8@counter(%rip)", "symbol 'counter' has an address only in a linked file", 2},
                    Refusal{kX64, "8@$counter", "symbol 'counter' has an address only in a linked file", 3},
                    Refusal{kX64, "8@f@GOTPCREL(%rip)", "symbol 'f' has an address only", 2},
                    Refusal{kX64, "8@f@GOTPCREL(%rax)", "relocation 'GOTPCREL' with base register rax", 4},
                    Refusal{kX32, "4@f@GOTOFF", "relocation 'GOTOFF' with no base register", 4},
                    Refusal{kX64, "8@f@PLT(%rip)", "relocation 'PLT' of symbol 'f' is not supported", 4}));

INSTANTIATE_TEST_SUITE_P(
    ThreadLocals, UnreadableOperand,
    testing::Values(Refusal{kX64, "8@%fs:tl@tpoff", "symbol 'tl' has an address only in a linked file", 6},
                    Refusal{kX64, "8@tl@dtpoff(%rax)", "symbol 'tl' has an address only in a linked file", 2},
                    Refusal{kX64, "8@%fs:counter", "symbol 'counter' in segment %fs without an offset", 6},
                    Refusal{kX64, "8@%fs:f@GOTPCREL(%rip)", "symbol 'f' in segment %fs without an offset", 3},
                    Refusal{kX64, "8@tl@tpoff", "relocation 'tpoff' with no base register", 5},
                    Refusal{kX64, "8@tl@tpoff(%rip)", "relocation 'tpoff' with base register rip", 5},
                    Refusal{kX64, "8@tl@dtpoff", "relocation 'dtpoff' with no base register", 5},
                    Refusal{kX64, "8@%fs:tl@dtpoff(%rax)", "relocation 'dtpoff' with segment %fs", 9},
                    Refusal{kX64, "8@%fs:tl@ntpoff", "relocation 'ntpoff' is not supported on x86_64", 9},
                    Refusal{kX32, "4@%gs:tl@tpoff", "relocation 'tpoff' is not supported on i386", 9},
                    Refusal{kX64, "8@tl@gottpoff(%rip)", "relocation 'gottpoff' of symbol 'tl' is not supported", 5},
                    Refusal{kArm, "8@[x0, #:tprel_lo12:tl]", "relocation 'tprel_lo12' of symbol 'tl' is not", 9}));

TEST(UnreadableArguments, keep_their_text_and_type) {
  const Arg wide = test::resolve_text("24@-8(%rbp,%r9,4)", kX64).arg;
  EXPECT_EQ(wide.source, "24@-8(%rbp,%r9,4)");
  EXPECT_EQ(wide.type.size, 24U);
}

TEST(UnreadableArguments, count_their_column_from_the_start_of_all_arguments) {
  const auto args = ArgDecoder(kX64).decode("8@%rdi 4@%oops -4@$3");
  ASSERT_EQ(args.size(), 3U);
  EXPECT_TRUE(args[0].readable());
  EXPECT_FALSE(args[1].readable());
  EXPECT_EQ(std::get<usdt::Unreadable>(args[1].location).column, 10U);
  EXPECT_TRUE(args[2].readable());
}

TEST(UnreadableArguments, that_do_not_parse_keep_the_grammars_reason) {
  ParsedArg parsed;
  parsed.text = "8@?!";
  parsed.column = 7;
  parsed.unreadable = usdt::Unreadable{.reason = "unexpected '?'", .column = 9};
  const Arg arg = resolve::resolve_arg(parsed, arch::for_machine(kX64), nullptr);
  EXPECT_EQ(arg.location, Location(*parsed.unreadable));
}

TEST(Needs, name_what_is_beyond_registers_and_memory) {
  const auto needs = [](std::string_view text, Machine machine) { return test::resolve_text(text, machine).arg.needs; };
  EXPECT_EQ(needs("8@counter(%rip)", kX64), Needs{Need::symbol});
  EXPECT_EQ(needs("8@f@GOTPCREL(%rip)", kX64), (Needs{Need::symbol, Need::got}));
  EXPECT_EQ(needs("4@12+t@GOTOFF(%eax)", kX32), (Needs{Need::symbol, Need::got}));
  EXPECT_EQ(needs("4@%gs:tl@ntpoff", kX32), (Needs{Need::symbol, Need::segment_base}));
  EXPECT_EQ(needs("8@%fs:(%rax)", kX64), Needs{Need::segment_base});
  EXPECT_EQ(needs("8@tl@dtpoff(%rax)", kX64), Needs{Need::symbol});
  EXPECT_EQ(needs("4@[x0, #:lo12:s]", kArm), Needs{Need::symbol});
  EXPECT_EQ(needs("8@%esi", kX32), Needs{Need::reg_pair});
  EXPECT_EQ(needs("8@%rsi", kX64), Needs{});
}

}  // namespace
}  // namespace usdt
