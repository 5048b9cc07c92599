// SPDX-License-Identifier: BSD-2-Clause
// Operands without symbols: the value each encoded spec yields.
#include <gtest/gtest.h>

#include "fake_task.hpp"
#include "tiny_elf.hpp"
#include "usdt/decode.hpp"

namespace usdt {
namespace {

using test::FakeTask;
using test::resolve_text;

constexpr std::uint64_t signed_bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

/// The value of `text` in `task`; a failed expectation where it is unreadable.
std::uint64_t value(const FakeTask& task, std::string_view text) {
  const test::Resolved resolved = resolve_text(text, task.arch.machine);
  EXPECT_TRUE(resolved.arg.readable()) << text << ": " << resolved.arg.why_unreadable();
  const auto read = task.read(resolved.encoded);
  EXPECT_TRUE(read) << text << ": nothing at its address";
  return read.value_or(0xbadbadbadbad);
}

TEST(Constants, are_cut_to_their_size_and_extended_by_their_sign) {
  const FakeTask task(Machine::x86_64);
  EXPECT_EQ(value(task, "-4@$-1"), signed_bits(-1));
  EXPECT_EQ(value(task, "4@$-1"), 0xffffffffU);
  EXPECT_EQ(value(task, "-1@$255"), signed_bits(-1));
  EXPECT_EQ(value(task, "2@$-2"), 0xfffeU);
  EXPECT_EQ(value(task, "8@$18446744073709551614"), signed_bits(-2));
  EXPECT_EQ(value(task, "-8@$-9223372036854775808"), 0x8000000000000000U);
  EXPECT_EQ(resolve_text("4@$-1", Machine::x86_64).encoded.value, 0xffffffffU);
  EXPECT_EQ(resolve_text("-4@$-1", Machine::x86_64).encoded.value, signed_bits(-1));
}

TEST(Constants, of_floats_are_bits) {
  const test::Resolved one = resolve_text("4f@$0xbf800000", Machine::x86_64);
  EXPECT_EQ(one.encoded.value, 0xbf800000U);
  EXPECT_EQ(one.encoded.flags, USDT_ARG_FLOAT);
}

TEST(Registers, are_read_in_the_width_of_the_value) {
  FakeTask task(Machine::x86_64);
  task.set("rax", 0x1122334455668bff);
  EXPECT_EQ(value(task, "8@%rax"), 0x1122334455668bffU);
  EXPECT_EQ(value(task, "4@%eax"), 0x55668bffU);
  EXPECT_EQ(value(task, "-4@%rax"), 0x55668bffU);
  EXPECT_EQ(value(task, "-2@%ax"), signed_bits(-29697));
  EXPECT_EQ(value(task, "1@%al"), 0xffU);
  EXPECT_EQ(value(task, "-1@%al"), signed_bits(-1));
  EXPECT_EQ(value(task, "1@%ah"), 0x8bU);
  EXPECT_EQ(value(task, "-1@%ah"), signed_bits(-117));
}

TEST(Registers, of_i386_are_the_low_halves) {
  FakeTask task(Machine::i386);
  task.set("ebx", 0xdeadbeef00000000U | 0x80000001U);
  EXPECT_EQ(value(task, "4@%ebx"), 0x80000001U);
  EXPECT_EQ(value(task, "-4@%ebx"), signed_bits(-2147483647));
}

TEST(Registers, of_arm64_include_the_zero_register) {
  FakeTask task(Machine::aarch64);
  task.set("x30", 7);
  task.set("sp", 0x7000);
  EXPECT_EQ(value(task, "8@lr"), 7U);
  EXPECT_EQ(value(task, "8@sp"), 0x7000U);
  EXPECT_EQ(value(task, "4@wzr"), 0U);
  EXPECT_EQ(value(task, "8@xzr"), 0U);
}

TEST(Registers, of_riscv64_have_two_names_and_a_zero) {
  FakeTask task(Machine::riscv64);
  task.set("ra", 7);
  task.set("a5", 0xffffffff80000001U);
  EXPECT_EQ(value(task, "8@x1"), 7U);
  EXPECT_EQ(value(task, "4@a5"), 0x80000001U);
  EXPECT_EQ(value(task, "-4@x15"), signed_bits(-2147483647));
  EXPECT_EQ(value(task, "8@zero"), 0U);
  EXPECT_EQ(resolve_text("8f@fa0", Machine::riscv64).arg.why_unreadable(),
            "in vector register fa0, which the kernel does not hand to probes");
}

TEST(Registers, without_a_size_have_the_width_of_their_name) {
  FakeTask task(Machine::x86_64);
  task.set("rax", 0x1122334455668bff);
  EXPECT_EQ(value(task, "%rax"), 0x1122334455668bffU);
  EXPECT_EQ(value(task, "%eax"), 0x55668bffU);
  EXPECT_EQ(value(task, "%ax"), 0x8bffU);
  EXPECT_EQ(value(task, "%al"), 0xffU);
  EXPECT_EQ(value(task, "%ah"), 0x8bU);
  EXPECT_EQ(resolve_text("%eax", Machine::x86_64).arg.type.size, 4U);
  EXPECT_EQ(resolve_text("%eax", Machine::i386).arg.type.size, 4U);
  EXPECT_EQ(resolve_text("%al", Machine::i386).arg.type.size, 1U);
  FakeTask arm(Machine::aarch64);
  arm.set("x3", 0xffffffff00000005);
  EXPECT_EQ(value(arm, "w3"), 5U);
  EXPECT_EQ(value(arm, "x3"), 0xffffffff00000005U);
}

TEST(Registers, of_arm64_number_thirty_one_is_the_stack_pointer) {
  FakeTask task(Machine::aarch64);
  task.set("sp", 0x7000);
  task.store(0x7008, 42, 4);
  EXPECT_EQ(value(task, "8@x31"), 0x7000U);
  EXPECT_EQ(value(task, "4@[x31, 8]"), 42U);
  const Location location = resolve_text("4@[x31]", Machine::aarch64).arg.location;
  EXPECT_EQ(register_info(Machine::aarch64, std::get<Memory>(location).base).canon, "sp");
}

TEST(Registers, hold_floats_as_bits) {
  FakeTask task(Machine::aarch64);
  task.set("x2", 0xffffffff3f800000U);
  EXPECT_EQ(value(task, "4f@x2"), 0x3f800000U);
}

TEST(InstructionPointer, is_a_value_itself) {
  FakeTask task(Machine::x86_64);
  task.set_ip(0x555555555010);
  const auto resolved = resolve_text("8@%rip", Machine::x86_64, nullptr, VirtAddr(0x1010));
  ASSERT_TRUE(resolved.arg.readable());
  EXPECT_EQ(task.read(resolved.encoded), 0x555555555010U);
}

TEST(RegisterPairs, join_two_registers_where_gcc_made_the_file) {
  FakeTask task(Machine::i386);
  task.set("edx", 0xaaaaaaaa89abcdefU);
  task.set("ecx", 0xbbbbbbbb01234567U);
  const auto elf = test::sample_elf(Machine::i386).open();
  const elf::SymbolIndex symbols(*elf);
  const auto resolved = resolve_text("-8@%edx", Machine::i386, &symbols);
  ASSERT_TRUE(resolved.arg.readable()) << resolved.arg.why_unreadable();
  EXPECT_EQ(register_info(Machine::i386, std::get<Register>(resolved.arg.location).high).canon, "ecx");
  EXPECT_EQ(resolved.arg.needs, Needs{Need::reg_pair});
  EXPECT_EQ(task.read(resolved.encoded), 0x0123456789abcdefU);
}

TEST(RegisterPairs, are_not_guessed_where_gcc_is_not_alone_or_unknown) {
  const std::string gcc = "GCC: (Debian 12.2.0-14) 12.2.0";
  const std::string clang = "Debian clang version 14.0.6";
  for (const std::string& comment : {std::string(), clang, gcc + '\0' + clang}) {
    test::TinyElf made = test::sample_elf(Machine::i386);
    made.comment = comment;
    const elf::SymbolIndex symbols(*made.open());
    const auto resolved = resolve_text("8@%eax", Machine::i386, &symbols);
    EXPECT_FALSE(resolved.arg.readable()) << comment;
    EXPECT_EQ(resolved.arg.needs, Needs{Need::reg_pair});
    EXPECT_EQ(resolved.encoded.kind, USDT_ARG_UNREADABLE);
  }
}

TEST(Memory, is_read_in_exactly_its_size) {
  FakeTask task(Machine::x86_64);
  task.set("rbp", 0x7ffd0000);
  task.store(0x7ffd0000 - 20, 0xfffffff6, 4);
  EXPECT_EQ(value(task, "-4@-20(%rbp)"), signed_bits(-10));
  EXPECT_EQ(value(task, "4@-20(%rbp)"), 0xfffffff6U);
  EXPECT_EQ(task.read(resolve_text("8@-20(%rbp)", Machine::x86_64).encoded), std::nullopt);
}

TEST(Memory, adds_base_index_scale_and_displacement) {
  FakeTask task(Machine::x86_64);
  task.set("rax", 0x1000);
  task.set("rcx", 3);
  task.store(0x1000 + 3 * 8 + 16, 42, 2);
  task.store(3 * 4 + 0x600, 43, 1);
  task.store(0x1003, 44, 1);
  EXPECT_EQ(value(task, "2@16(%rax,%rcx,8)"), 42U);
  EXPECT_EQ(value(task, "1@0x600(,%rcx,4)"), 43U);
  EXPECT_EQ(value(task, "1@(%rax,%rcx)"), 44U);
  EXPECT_EQ(value(task, "2@-16+32(%rax,%rcx,8)"), 42U);
}

TEST(Memory, of_i386_wraps_at_four_gigabytes) {
  FakeTask task(Machine::i386);
  task.set("ebp", 0xffffffff00000010U);
  task.set("eax", 0xfffffff0U);
  task.store(0xfffffff8, 5, 4);
  task.store(0x20, 6, 4);
  EXPECT_EQ(value(task, "4@-24(%ebp)"), 5U);
  EXPECT_EQ(value(task, "4@32(%eax,%ebp)"), 6U);
}

TEST(Memory, of_x86_64_with_thirty_two_bit_registers_wraps_too) {
  FakeTask task(Machine::x86_64);
  task.set("rax", 0xdeadbeefffffffffU);
  task.set("rcx", 2);
  task.store(0x5, 9, 1);
  EXPECT_EQ(value(task, "1@2(%eax,%ecx,2)"), 9U);
}

TEST(Memory, in_the_threads_segment_adds_its_base) {
  FakeTask task(Machine::x86_64);
  task.thread_pointer = 0x7f0000001000;
  task.set("rax", signed_bits(-64));
  task.set("rcx", 2);
  task.store(0x7f0000001028, 0xcafe, 8);
  task.store(0x7f0000001000 - 68, 31, 4);
  task.store(0x7f0000001000 - 56, 32, 4);
  EXPECT_EQ(value(task, "8@%fs:0x28"), 0xcafeU);
  EXPECT_EQ(value(task, "4@%fs:-4(%rax)"), 31U);
  EXPECT_EQ(value(task, "4@%fs:(%rax,%rcx,4)"), 32U);
  const usdt_arg_spec spec = resolve_text("4@%fs:-4(%rax)", Machine::x86_64).encoded;
  EXPECT_EQ(spec.kind, USDT_ARG_MEM);
  EXPECT_EQ(spec.flags, USDT_ARG_THREAD);
}

TEST(Memory, in_the_threads_segment_of_i386_wraps_behind_its_base) {
  FakeTask task(Machine::i386);
  task.thread_pointer = 0xf7000100;
  task.set("eax", 0xffffffe0U);
  task.store(0xf70000e0, 33, 4);
  EXPECT_EQ(value(task, "4@%gs:(%eax)"), 33U);
  EXPECT_EQ(value(task, "4@%gs:0xffffffe0"), 33U);
  EXPECT_EQ(resolve_text("4@%gs:(%eax)", Machine::i386).encoded.flags, USDT_ARG_THREAD | USDT_ARG_ADDR32);
}

TEST(Memory, of_arm64_knows_its_index_forms) {
  FakeTask task(Machine::aarch64);
  task.set("x0", 0x10000);
  task.set("x1", 0xffffffffU);
  task.set("x2", 2);
  task.set("sp", 0x20000);
  task.store(0x10000 + 0xffffffffULL * 4, 1, 4);
  task.store(0x10000 - 4, 2, 4);
  task.store(0x10010, 3, 8);
  task.store(0x10002, 4, 1);
  task.store(0x20000, 5, 8);
  task.store(0x20010, 6, 8);
  EXPECT_EQ(value(task, "4@[x0, w1, uxtw 2]"), 1U);
  EXPECT_EQ(value(task, "4@[x0, w1, sxtw 2]"), 2U);
  EXPECT_EQ(value(task, "8@[x0, x2, lsl 3]"), 3U);
  EXPECT_EQ(value(task, "1@[x0, x2]"), 4U);
  EXPECT_EQ(value(task, "8@[sp], 16"), 5U);
  EXPECT_EQ(value(task, "8@[sp, 16]!"), 6U);
  EXPECT_EQ(value(task, "8@[sp, #16]"), 6U);
  EXPECT_EQ(value(task, "8@[sp, xzr]"), 5U);
}

TEST(Memory, of_riscv64_has_a_base_and_a_displacement) {
  FakeTask task(Machine::riscv64);
  task.set("s0", 0x20000);
  task.store(0x1ffec, 5, 4);
  task.store(0x20008, 6, 8);
  task.store(0x700, 7, 8);
  EXPECT_EQ(value(task, "-4@-20(s0)"), 5U);
  EXPECT_EQ(value(task, "8@8(fp)"), 6U);
  EXPECT_EQ(value(task, "8@0x700(zero)"), 7U);
}

}  // namespace
}  // namespace usdt
