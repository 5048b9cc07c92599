// SPDX-License-Identifier: BSD-2-Clause
#include "program/specialise.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <cstring>

#include "tests/arg_specs.hpp"

namespace usdt::backends {
namespace {

using test::mem;
using test::reg;

// Opcodes as Documentation/bpf/standardization/instruction-set.rst numbers them.
constexpr std::uint8_t kLoadWord = 0x79, kMove = 0xb7, kAdd = 0x07, kLeft = 0x67, kRight = 0x77, kRightSigned = 0xc7;

bpf_insn insn(std::uint8_t code, std::int32_t immediate, std::int16_t offset = 0) {
  bpf_insn made{};
  made.code = code;
  made.off = offset;
  made.imm = immediate;
  return made;
}

/// An object file of one section of code.
std::vector<std::byte> object_of(const std::vector<bpf_insn>& code) {
  const std::size_t bytes = code.size() * sizeof(bpf_insn);
  Elf64_Ehdr header{};
  header.e_shoff = sizeof(header) + bytes;
  header.e_shnum = 1;
  Elf64_Shdr section{};
  section.sh_type = SHT_PROGBITS;
  section.sh_flags = SHF_EXECINSTR;
  section.sh_offset = sizeof(header);
  section.sh_size = bytes;
  std::vector<std::byte> out(sizeof(header) + bytes + sizeof(section));
  std::memcpy(out.data(), &header, sizeof(header));
  std::memcpy(out.data() + sizeof(header), code.data(), bytes);
  std::memcpy(out.data() + header.e_shoff, &section, sizeof(section));
  return out;
}

/// A program at sites of files with a spec of its own.
PlannedProgram program_of(const EncodedSpec& spec) { return {.link_spec = spec}; }

std::vector<bpf_insn> specialised(const std::vector<bpf_insn>& code, const PlannedProgram& program) {
  auto object = specialise(object_of(code), program);
  EXPECT_TRUE(object) << object.error().message;
  std::vector<bpf_insn> out(code.size());
  if (object) std::memcpy(out.data(), object->data() + sizeof(Elf64_Ehdr), out.size() * sizeof(bpf_insn));
  return out;
}

std::vector<bpf_insn> specialised(const std::vector<bpf_insn>& code, const EncodedSpec& spec) {
  return specialised(code, program_of(spec));
}

EncodedSpec spec_of(std::vector<usdt_arg_spec> args) { return {.user_cookie = 0, .args = std::move(args)}; }

std::vector<bpf_insn> read_register(int n) {
  return {insn(kLoadWord, 0), insn(kLeft, USDT_PATCH_ARG_CUT + n), insn(kRight, USDT_PATCH_ARG_CUT + n)};
}

bool is_nothing(const bpf_insn& code) {
  return code.code == 0x05 && code.imm == 0 && code.off == 0 && code.dst_reg == 0 && code.src_reg == 0;
}

TEST(Specialise, makes_an_unsigned_register_one_load_of_its_size) {
  constexpr std::uint8_t kLoad32 = 0x61, kLoad16 = 0x69, kLoad8 = 0x71;
  for (const auto& [size, load] : {std::pair{1, kLoad8}, {2, kLoad16}, {4, kLoad32}, {8, kLoadWord}}) {
    const auto code = specialised(read_register(0), spec_of({reg(14, static_cast<unsigned>(size))}));
    EXPECT_EQ(code[0].code, load);
    EXPECT_EQ(code[0].off, 112) << "rdi is word 14 of pt_regs";
    EXPECT_TRUE(is_nothing(code[1]) && is_nothing(code[2])) << size;
  }
}

TEST(Specialise, makes_what_no_load_fits_a_load_and_two_shifts) {
  const auto code = specialised(read_register(0), spec_of({reg(14, 3)}));
  EXPECT_EQ(code[0].code, kLoadWord);
  EXPECT_EQ(code[0].off, 112);
  EXPECT_EQ(code[1].imm, 40);
  EXPECT_EQ(code[2].imm, 40);
  EXPECT_EQ(code[2].code, kRight);
}

TEST(Specialise, leaves_a_whole_signed_word_as_it_is) {
  const auto code = specialised(read_register(0), spec_of({reg(14, 8, USDT_ARG_SIGNED)}));
  EXPECT_EQ(code[0].code, kLoadWord);
  EXPECT_TRUE(is_nothing(code[1]) && is_nothing(code[2]));
}

TEST(Specialise, trims_what_was_read_from_memory) {
  std::vector<bpf_insn> program{insn(kLeft, USDT_PATCH_ARG_TRIM), insn(kRight, USDT_PATCH_ARG_TRIM)};
  program[0].dst_reg = program[1].dst_reg = 7;
  const auto trimmed = [&](std::uint8_t size, unsigned flags) {
    return specialised(program, spec_of({mem(8, 4, size, flags)}));
  };
  EXPECT_TRUE(is_nothing(trimmed(8, 0)[0]) && is_nothing(trimmed(8, 0)[1]));
  const auto half = trimmed(4, 0);
  EXPECT_EQ(half[0].code, 0xbc) << "w7 = w7";
  EXPECT_TRUE(half[0].dst_reg == 7 && half[0].src_reg == 7 && half[0].imm == 0);
  EXPECT_TRUE(is_nothing(half[1]));
  const auto signed_half = trimmed(4, USDT_ARG_SIGNED), small = trimmed(2, 0);
  EXPECT_TRUE(signed_half[0].imm == 32 && signed_half[1].imm == 32 && signed_half[1].code == kRightSigned);
  EXPECT_TRUE(small[0].imm == 48 && small[1].imm == 48 && small[1].code == kRight);
}

TEST(Specialise, extends_a_signed_register_by_its_sign) {
  const auto code = specialised(read_register(1), spec_of({reg(0, 8), reg(10, 2, USDT_ARG_SIGNED)}));
  EXPECT_EQ(code[0].off, 80);
  EXPECT_EQ(code[1].imm, 48);
  EXPECT_EQ(code[2].imm, 48);
  EXPECT_EQ(code[2].code, kRightSigned);
}

TEST(Specialise, writes_the_address_of_memory) {
  const std::vector<bpf_insn> program{insn(kLoadWord, 0), insn(kAdd, USDT_PATCH_ARG_DISPLACEMENT),
                                      insn(kMove, USDT_PATCH_ARG_WINDOW), insn(kMove, USDT_PATCH_ARG_SIZE)};
  const auto code = specialised(program, spec_of({mem(-20, 4, 4), mem(-24, 4, 4)}));
  EXPECT_EQ(code[0].off, 32);
  EXPECT_EQ(code[1].imm, -20);
  EXPECT_EQ(code[2].imm, USDT_WINDOW(1, 4)) << "its neighbour begins the window";
  EXPECT_EQ(code[3].imm, 4);
}

/// What becomes of the placeholders of the first arguments, which are moved to registers.
std::vector<int> placeholders(int placeholder, int arguments, const PlannedProgram& program) {
  std::vector<bpf_insn> code;
  for (int n = 0; n < arguments; ++n) code.push_back(insn(kMove, placeholder + n));
  std::vector<int> numbers;
  for (const bpf_insn& each : specialised(code, program)) numbers.push_back(each.imm);
  return numbers;
}
std::vector<int> kinds(int arguments, const PlannedProgram& program) {
  return placeholders(USDT_PATCH_ARG_KIND, arguments, program);
}

TEST(Specialise, says_of_each_argument_how_it_is_read) {
  const usdt_arg_spec far_away = mem(std::int64_t{1} << 40, 4, 4);
  usdt_arg_spec indexed = mem(8, 4, 4), pair = reg(10, 8, USDT_ARG_PAIR), high = reg(10, 1);
  indexed.index = 11;
  high.shift = 8;
  PlannedProgram program = program_of(spec_of({reg(10, 8), mem(8, 4, 4), far_away, indexed, pair, high, mem(8, 4, 4)}));
  program.values_by_site = 1u << 6;
  EXPECT_EQ(kinds(8, program),
            (std::vector<int>{USDT_PATCHED_REG, USDT_PATCHED_MEM, USDT_PATCHED_OTHER, USDT_PATCHED_OTHER,
                              USDT_PATCHED_OTHER, USDT_PATCHED_OTHER, USDT_PATCHED_OTHER, USDT_PATCHED_OTHER}));
}

TEST(Specialise, does_not_take_the_registers_of_a_calls_entry_for_those_of_its_end) {
  PlannedProgram program = program_of(spec_of({reg(14, 8)}));
  program.kind.source = USDT_SOURCE_KERNEL;
  EXPECT_EQ(kinds(1, program), std::vector<int>{USDT_PATCHED_REG});
  program.kind.calls = true;
  EXPECT_EQ(kinds(1, program), std::vector<int>{USDT_PATCHED_OTHER});
}

TEST(Specialise, names_the_slot_of_what_is_in_one) {
  usdt_arg_spec unreadable = reg(3, 8);
  unreadable.kind = USDT_ARG_UNREADABLE;
  PlannedProgram program = program_of(
      spec_of({reg(0, 8), unreadable, reg(2, 4, USDT_ARG_SIGNED), reg(USDT_SLOT_RESULT, 8, USDT_ARG_RESULT)}));
  program.kind.source = USDT_SOURCE_SLOTS;
  const auto kind = kinds(5, program);
  EXPECT_EQ(kind, (std::vector<int>{USDT_PATCHED_SLOT, USDT_PATCHED_OTHER, USDT_PATCHED_SLOT, USDT_PATCHED_SLOT,
                                    USDT_PATCHED_OTHER}));
  const auto slots = placeholders(USDT_PATCH_ARG_SLOT, 5, program);
  EXPECT_EQ(slots[0], 0);
  EXPECT_EQ(slots[2], 2);
  EXPECT_EQ(slots[3], USDT_SLOT_RESULT);
  program.kind.source = USDT_SOURCE_OLD_SLOTS;
  EXPECT_EQ(kinds(4, program)[3], USDT_PATCHED_OTHER) << "at the entry it is not there yet";
}

TEST(Specialise, leaves_other_instructions_alone) {
  const std::vector<bpf_insn> program{insn(kMove, 7), insn(kLeft, 3), insn(kAdd, USDT_PATCH_ARG_CUT),
                                      // The second slot of a 64-bit constant is no instruction.
                                      insn(0x18, 1), insn(0, USDT_PATCH_ARG_KIND),
                                      insn(kMove, USDT_PATCH_ARG_KIND + 32)};
  const auto code = specialised(program, spec_of({reg(1, 8)}));
  EXPECT_EQ(std::memcmp(code.data(), program.data(), program.size() * sizeof(bpf_insn)), 0);
}

TEST(Specialise, refuses_placeholders_without_their_neighbours) {
  const PlannedProgram program = program_of(spec_of({reg(1, 8)}));
  EXPECT_FALSE(specialise(object_of({insn(kLeft, USDT_PATCH_ARG_CUT), insn(kRight, USDT_PATCH_ARG_CUT)}), program));
  EXPECT_FALSE(specialise(object_of({insn(kLoadWord, 0), insn(kLeft, USDT_PATCH_ARG_CUT)}), program));
  EXPECT_FALSE(specialise(object_of({insn(kAdd, USDT_PATCH_ARG_DISPLACEMENT)}), program));
}

TEST(Specialise, refuses_sections_beyond_the_file) {
  std::vector<std::byte> object = object_of(read_register(0));
  EXPECT_FALSE(specialise(std::span(object).first(20), {}));
  EXPECT_FALSE(specialise(std::span(object).first(object.size() - 1), {}));
  const std::uint64_t huge = ~std::uint64_t{0} - 8;
  std::memcpy(object.data() + object.size() - sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), &huge, sizeof(huge));
  EXPECT_FALSE(specialise(object, {}));
}

}  // namespace
}  // namespace usdt::backends
