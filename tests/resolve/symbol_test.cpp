// SPDX-License-Identifier: BSD-2-Clause
// Operands with symbols, in a position-independent file loaded somewhere else than where it was linked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_task.hpp"
#include "tiny_elf.hpp"

namespace usdt {
namespace {

using test::FakeTask;
using testing::HasSubstr;

constexpr std::uint64_t kPc = test::TinyElf::kText + 0x40;

/// One task of `machine`, stopped at kPc of the sample file, which was loaded `bias` higher than linked.
struct Loaded {
  explicit Loaded(Machine machine, std::uint64_t load_bias) : Loaded(test::sample_elf(machine), load_bias) {}
  Loaded(const test::TinyElf& made, std::uint64_t load_bias)
      : bias(load_bias), elf(made.open()), symbols(*elf), task(made.machine) {
    task.set_ip(kPc + load_bias);
  }
  [[nodiscard]] test::Resolved resolve(std::string_view text) const {
    return test::resolve_text(text, task.arch.machine, &symbols, VirtAddr(kPc));
  }
  [[nodiscard]] std::uint64_t value(std::string_view text) const {
    const test::Resolved resolved = resolve(text);
    EXPECT_TRUE(resolved.arg.readable()) << text << ": " << resolved.arg.why_unreadable();
    const auto read = task.read(resolved.encoded);
    EXPECT_TRUE(read) << text << ": nothing at its address";
    return read.value_or(0xbadbadbadbad);
  }

  std::uint64_t bias;
  std::shared_ptr<const ElfFile> elf;
  elf::SymbolIndex symbols;
  FakeTask task;
};

class PlainSymbols : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(LoadBias, PlainSymbols, testing::Values(0U, 0x555555554000U, 0xffffffffffff0000U));

TEST_P(PlainSymbols, are_found_wherever_the_file_is_loaded) {
  Loaded loaded(Machine::x86_64, GetParam());
  loaded.task.store(0x14010 + loaded.bias, 0xfffffff9, 4);
  loaded.task.store(0x14100 + 24 + loaded.bias, 77, 8);
  EXPECT_EQ(loaded.value("-4@counter(%rip)"), static_cast<std::uint64_t>(-7));
  EXPECT_EQ(loaded.value("8@24+table(%rip)"), 77U);
  EXPECT_EQ(loaded.value("8@table+24(%rip)"), 77U);
  EXPECT_EQ(std::get<Memory>(loaded.resolve("-4@counter(%rip)").arg.location).origin, Origin::file);
}

TEST_P(PlainSymbols, are_addresses_as_constants) {
  const Loaded loaded(Machine::x86_64, GetParam());
  EXPECT_EQ(loaded.value("8@$counter"), 0x14010 + loaded.bias);
  EXPECT_EQ(loaded.value("8@$table+4"), 0x14104 + loaded.bias);
  EXPECT_EQ(loaded.resolve("8@$counter").encoded.kind, USDT_ARG_ADDR);
}

TEST(Symbols, without_a_base_register_take_an_index) {
  Loaded loaded(Machine::x86_64, 0);
  loaded.task.set("rdi", 5);
  loaded.task.store(0x14100 + 40, 11, 8);
  EXPECT_EQ(loaded.value("8@table(,%rdi,8)"), 11U);
  loaded.task.set("rdi", 40);
  EXPECT_EQ(loaded.value("8@table(%rdi)"), 11U);
}

TEST(Symbols, beside_two_registers_are_absolute_where_the_program_is_loaded_as_linked) {
  test::TinyElf made = test::sample_elf(Machine::x86_64);
  for (const bool program : {false, true}) {
    made.program = program;
    Loaded loaded(made, 0);
    loaded.task.set("rax", 8);
    loaded.task.store(0x14100 + 8 + 16, 0xfffe, 2);
    EXPECT_EQ(loaded.value("-2@table(%rax,%rax,2)"), static_cast<std::uint64_t>(-2));
    const unsigned flags = loaded.resolve("-2@table(%rax,%rax,2)").encoded.flags;
    EXPECT_EQ((flags & USDT_ARG_IP) != 0, !program);
  }
}

TEST(Symbols, of_i386_are_thirty_two_bit_addresses) {
  Loaded loaded(Machine::i386, 0xf7000000);
  loaded.task.store(0xf7014010, 12, 4);
  EXPECT_EQ(loaded.value("4@counter"), 12U);
  EXPECT_EQ(loaded.value("4@$counter+4"), 0xf7014014U);
}

TEST(GlobalOffsetTable, slots_are_read_for_the_address_they_hold) {
  Loaded loaded(Machine::x86_64, 0x7f0000000000);
  loaded.task.store(0x14818 + loaded.bias, 0x7fffdeadbeef, 8);
  EXPECT_EQ(loaded.value("8@elsewhere@GOTPCREL(%rip)"), 0x7fffdeadbeefU);
  EXPECT_EQ(loaded.resolve("8@elsewhere@GOTPCREL(%rip)").arg.needs, (Needs{Need::symbol, Need::got}));
}

TEST(GlobalOffsetTable, without_a_slot_the_symbols_address_is_the_value) {
  const Loaded loaded(Machine::x86_64, 0x7f0000000000);
  EXPECT_EQ(loaded.value("8@counter@GOTPCREL(%rip)"), 0x14010 + loaded.bias);
}

TEST(GlobalOffsetTable, without_slot_and_definition_there_is_no_value) {
  const Loaded loaded(Machine::x86_64, 0);
  const Arg arg = loaded.resolve("8@slotless_elsewhere@GOTPCREL(%rip)").arg;
  EXPECT_FALSE(arg.readable());
  EXPECT_THAT(arg.why_unreadable(), HasSubstr("'slotless_elsewhere'"));
}

TEST(GlobalOffsetTable, of_i386_is_reached_through_its_base_register) {
  Loaded loaded(Machine::i386, 0xf7000000);
  loaded.task.set("ebx", test::TinyElf::kGot + loaded.bias);
  loaded.task.store(0xf7014818, 0xf7aa0000, 4);
  loaded.task.store(0xf7014104, 13, 4);
  loaded.task.set("edx", 1);
  EXPECT_EQ(loaded.value("4@elsewhere@GOT(%ebx)"), 0xf7aa0000U);
  EXPECT_EQ(loaded.value("4@4+table@GOTOFF(%ebx)"), 13U);
  EXPECT_EQ(loaded.value("4@table@GOTOFF(%ebx,%edx,4)"), 13U);
  EXPECT_EQ(loaded.resolve("4@table@GOTOFF(%ebx)").encoded.flags & USDT_ARG_IP, 0);
}

/// A task of the sample file as a program: its thread-local block of 0x29 bytes ends up 0x30 before the thread pointer.
Loaded program(Machine machine, std::uint64_t thread_pointer) {
  test::TinyElf made = test::sample_elf(machine);
  made.program = true;
  Loaded loaded(made, 0);
  loaded.task.thread_pointer = thread_pointer;
  return loaded;
}

TEST(ThreadLocals, of_a_program_lie_before_the_thread_pointer) {
  Loaded loaded = program(Machine::x86_64, 0x7f0000001000);
  loaded.task.store(0x7f0000001000 - 0x30 + 8, 0xfffffff9, 4);
  loaded.task.store(0x7f0000001000 - 0x30 + 8 + 12, 34, 4);
  loaded.task.set("rcx", 3);
  EXPECT_EQ(loaded.value("-4@%fs:per_thread@tpoff"), static_cast<std::uint64_t>(-7));
  EXPECT_EQ(loaded.value("4@%fs:12+per_thread@tpoff"), 34U);
  EXPECT_EQ(loaded.value("4@%fs:per_thread@tpoff(,%rcx,4)"), 34U);
  const usdt_arg_spec spec = loaded.resolve("4@%fs:per_thread@tpoff").encoded;
  EXPECT_EQ(spec.value, static_cast<std::uint64_t>(-0x28));
  EXPECT_EQ(spec.flags, USDT_ARG_THREAD);
  EXPECT_EQ(loaded.resolve("4@%fs:per_thread@tpoff").arg.needs, (Needs{Need::symbol, Need::segment_base}));
}

TEST(ThreadLocals, of_an_i386_program_likewise) {
  Loaded loaded = program(Machine::i386, 0xf7000100);
  loaded.task.store(0xf7000100 - 0x30 + 8, 35, 4);
  EXPECT_EQ(loaded.value("4@%gs:per_thread@ntpoff"), 35U);
  EXPECT_EQ(loaded.resolve("4@%gs:per_thread@ntpoff").encoded.flags, USDT_ARG_THREAD | USDT_ARG_ADDR32);
}

TEST(ThreadLocals, with_the_thread_pointer_in_a_register_need_no_segment) {
  Loaded loaded = program(Machine::x86_64, 0);
  loaded.task.set("rax", 0x7f0000001000);
  loaded.task.store(0x7f0000001000 - 0x30 + 8, 36, 4);
  EXPECT_EQ(loaded.value("4@per_thread@tpoff(%rax)"), 36U);
  EXPECT_EQ(loaded.value("4@per_thread@dtpoff(%rax)"), 36U) << "the linker has put the thread pointer there";
  EXPECT_EQ(loaded.resolve("4@per_thread@dtpoff(%rax)").encoded.flags, 0);
}

TEST(ThreadLocals, of_a_program_are_not_guessed_where_the_linker_is_not_known) {
  const std::string gcc = "GCC: (Debian 12.2.0-14) 12.2.0";
  for (const std::string linker : {"mold 1.10.1 (compatible with GNU ld)", "Linker: Wild version 0.4"}) {
    test::TinyElf made = test::sample_elf(Machine::x86_64);
    made.program = true;
    for (const std::string& comment : {linker + '\0' + gcc, gcc + '\0' + linker, std::string()}) {
      made.comment = comment;
      const Arg arg = Loaded(made, 0).resolve("4@per_thread@dtpoff(%rax)").arg;
      EXPECT_FALSE(arg.readable()) << comment;
      EXPECT_THAT(arg.why_unreadable(), HasSubstr("linker"));
      EXPECT_TRUE(Loaded(made, 0).resolve("4@%fs:per_thread@tpoff").arg.readable()) << comment;
    }
    made.comment = gcc + '\0' + "Linker: LLD 14.0.6";
    EXPECT_TRUE(Loaded(made, 0).resolve("4@per_thread@dtpoff(%rax)").arg.readable());
  }
}

TEST(ThreadLocals, of_a_library_are_counted_from_its_block) {
  Loaded loaded(Machine::x86_64, 0x7f0000000000);
  loaded.task.set("rax", 0x555500000000);
  loaded.task.store(0x555500000008, 37, 4);
  EXPECT_EQ(loaded.value("4@per_thread@dtpoff(%rax)"), 37U);
}

TEST(ThreadLocals, are_as_far_away_as_their_block_is_large_rounded_up) {
  test::TinyElf made = test::sample_elf(Machine::x86_64);
  made.program = true;
  made.tls_size = 0x40;
  made.tls_align = 0x40;
  EXPECT_EQ(Loaded(made, 0).resolve("8@%fs:per_thread@tpoff").encoded.value, static_cast<std::uint64_t>(-0x38));
  made.tls_size = 0x41;
  EXPECT_EQ(Loaded(made, 0).resolve("8@%fs:per_thread@tpoff").encoded.value, static_cast<std::uint64_t>(-0x78));
  made.tls_align = 0;
  EXPECT_EQ(Loaded(made, 0).resolve("8@%fs:per_thread@tpoff").encoded.value, static_cast<std::uint64_t>(-0x39));
  made.tls_align = 24;
  EXPECT_THAT(Loaded(made, 0).resolve("8@%fs:per_thread@tpoff").arg.why_unreadable(), HasSubstr("no power of 2"));
}

TEST(PageOffsets, of_arm64_are_the_low_twelve_bits) {
  Loaded loaded(Machine::aarch64, 0xaaaa00000000);
  loaded.task.set("x0", 0x14000 + loaded.bias);
  loaded.task.store(0x14104 + loaded.bias, 21, 4);
  loaded.task.store(0x14818 + loaded.bias, 0x1234, 8);
  EXPECT_EQ(loaded.value("4@[x0, #:lo12:table+4]"), 21U);
  EXPECT_EQ(loaded.value("8@[x0, #:got_lo12:elsewhere]"), 0x1234U);
}

struct Puzzle {
  std::string_view text;
  std::string_view reason;
};
void PrintTo(const Puzzle& puzzle, std::ostream* out) { *out << puzzle.text; }
class PuzzlingSymbols : public testing::TestWithParam<Puzzle> {};
INSTANTIATE_TEST_SUITE_P(
    Names, PuzzlingSymbols,
    testing::Values(Puzzle{"8@twice(%rip)", "0x14020, 0x14030"},
                    Puzzle{"8@.LC1(%rip)", "'.LC1' is in neither .symtab nor .dynsym"},
                    Puzzle{"8@per_thread(%rip)", "thread-local"}, Puzzle{"8@elsewhere(%rip)", "undefined here"},
                    Puzzle{"8@counter@dtpoff(%rax)", "'counter' is not thread-local"},
                    Puzzle{"8@.LTL1@dtpoff(%rax)", "'.LTL1' is in neither .symtab"},
                    Puzzle{"8@per_thread_twice@dtpoff(%rax)", "2 thread-local offsets: 0x10, 0x18"},
                    Puzzle{"8@per_thread_elsewhere@dtpoff(%rax)", "undefined here"},
                    Puzzle{"8@per_thread@tpoff(%rax)", "of a library"}));

TEST_P(PuzzlingSymbols, are_unreadable_and_not_guessed) {
  const Loaded loaded(Machine::x86_64, 0);
  const test::Resolved resolved = loaded.resolve(GetParam().text);
  EXPECT_FALSE(resolved.arg.readable());
  EXPECT_THAT(resolved.arg.why_unreadable(), HasSubstr(std::string(GetParam().reason)));
  EXPECT_EQ(std::get<Unreadable>(resolved.arg.location).column, 2U);
  EXPECT_EQ(resolved.encoded.kind, USDT_ARG_UNREADABLE);
}

}  // namespace
}  // namespace usdt
