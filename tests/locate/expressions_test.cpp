// SPDX-License-Identifier: BSD-2-Clause
// One expression after another as the location of a parameter, in debug information an assembler made. What is expected
// is what DWARF 5, section 2.5 and 2.6, says each comes to.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arch/arch.hpp"
#include "dwarf/debug_info.hpp"
#include "dwarf/functions.hpp"
#include "locate/signature.hpp"
#include "toolchain.hpp"

namespace usdt::test {
namespace {

using dwarf::DebugInfo;

/// A function `f` at `f`, one parameter `x` of a type of `size` bytes (encoding), at `location` for the whole function
/// or, as a list, from its first instruction on.
std::string assembly(std::string_view expression, bool list, int size, int encoding, std::string_view more) {
  return fmt::format(R"(
  .text
  .globl f
  .type f, @function
f: nop
  ret
.Lend:
  .size f, .-f
  .globl _start
_start: nop
  .section .debug_loclists,"",@progbits
  .long .Ll1 - .Ll0
.Ll0: .short 5
  .byte 8, 0
  .long 0
.Llist:
  .byte 7
  .quad f
  .quad .Lend
  .uleb128 .Le1 - .Le0
.Le0: {expression}
.Le1: .byte 0
.Ll1:
  .section .debug_abbrev,"",@progbits
  .byte 1, 0x11, 1, 0x13, 0x0b, 0x25, 8, 0x11, 1, 0x12, 6, 0, 0
  .byte 2, 0x2e, 1, 3, 8, 0x3f, 0x19, 0x27, 0x19, 0x11, 1, 0x12, 6, 0x40, 0x18, 0, 0
  .byte 3, 5, 0, 3, 8, 0x49, 0x13, 2, {form}, 0, 0
  .byte 4, 0x24, 0, 3, 8, 0x0b, 0x0b, 0x3e, 0x0b, 0, 0
  .byte 0
  .section .debug_info,"",@progbits
.Lunit: .long .Lu1 - .Lu0
.Lu0: .short 5
  .byte 1, 8
  .long .debug_abbrev
  .byte 1, 0x1d
  .string "GNU C17 12.2.0"
  .quad f
  .long .Lend - f
  .byte 2
  .string "f"
  .quad f
  .long .Lend - f
  .byte 1, 0x9c
  .byte 3
  .string "x"
  .long .Ltype - .Lunit
  {location}
  .byte 0
.Ltype: .byte 4
  .string "type"
  .byte {size}, {encoding}
.Lsigned32: .byte 4
  .string "int"
  .byte 4, 5
{more}
  .byte 0
.Lu1:
  .section .note.GNU-stack,"",@progbits
)",
                     fmt::arg("expression", expression), fmt::arg("form", list ? "0x17" : "0x18"),
                     fmt::arg("location", list ? std::string(".long .Llist - .debug_loclists")
                                               : fmt::format(".uleb128 .Lx1 - .Lx0\n.Lx0: {}\n.Lx1:", expression)),
                     fmt::arg("size", size), fmt::arg("encoding", encoding), fmt::arg("more", more));
}

class Expressions : public testing::Test {
 protected:
  void SetUp() override {
    if (run_in(dir_, "echo nop | as -64 - -o none.o").status != 0) GTEST_SKIP() << "no assembler for x86-64";
  }

  /// The argument whose location is `expression`, given as assembler text.
  [[nodiscard]] Arg arg_at(std::string_view expression, bool list = true, int size = 8, int encoding = 7) {
    dir_.write("x.s", assembly(expression, list, size, encoding, ""));
    const auto built = run_in(dir_, "as -64 x.s -o x.o && ld -Ttext=0x401000 x.o -o x");
    EXPECT_EQ(built.status, 0) << built.output;
    const auto file = ElfFile::open(dir_ / "x");
    if (!file) return {};
    const auto info = DebugInfo::open(*file);
    EXPECT_TRUE(info) << info.error().message;
    if (!info) return {};
    const auto functions = dwarf::functions_named(*info, "f");
    EXPECT_TRUE(functions && functions->size() == 1);
    if (!functions || functions->empty()) return {};
    const auto signature = locate::Signatures(*info).of(functions->front(), functions->front().instances.front());
    EXPECT_TRUE(signature && signature->args.size() == 1);
    if (!signature || signature->args.empty()) return {};
    pieces_ = signature->pieces.front();
    return signature->args.front();
  }
  [[nodiscard]] static RegisterId reg(std::string_view name) {
    const arch::Arch& arch = arch::for_machine(Machine::x86_64);
    return arch.id(*arch.find(name));
  }
  [[nodiscard]] static std::string reason(const Arg& arg) { return std::string(arg.why_unreadable()); }

  TempDir dir_;
  std::vector<Piece> pieces_;
};

TEST_F(Expressions, a_register_is_a_register) {
  EXPECT_EQ(arg_at(".byte 0x55").location, Location(Register{.id = reg("rdi")}));               // reg5
  EXPECT_EQ(arg_at(".byte 0x90; .uleb128 4").location, Location(Register{.id = reg("rsi")}));   // regx 4
  EXPECT_THAT(reason(arg_at(".byte 0x61")), testing::HasSubstr("in xmm0, a vector register"));  // reg17
  EXPECT_THAT(reason(arg_at(".byte 0x90; .uleb128 300")), testing::HasSubstr("not given"));
}

TEST_F(Expressions, an_address_is_memory) {
  EXPECT_EQ(arg_at(".byte 0x75; .sleb128 -16").location,  // breg5
            Location(Memory{.displacement = static_cast<std::uint64_t>(-16), .base = reg("rdi")}));
  EXPECT_EQ(arg_at(".byte 0x92; .uleb128 4; .sleb128 24").location,  // bregx
            Location(Memory{.displacement = 24, .base = reg("rsi")}));
  EXPECT_EQ(arg_at(".byte 0x03; .quad 0x404040").location,  // addr
            Location(Memory{.displacement = 0x404040, .origin = Origin::file}));
  EXPECT_EQ(arg_at(".byte 0x03; .quad 0x404040; .byte 0x75; .sleb128 0; .byte 0x33, 0x24, 0x22").location,
            Location(Memory{.displacement = 0x404040, .index = reg("rdi"), .shift = 3, .origin = Origin::file}));
}

TEST_F(Expressions, a_sum_of_registers_is_an_indexed_address) {
  // breg5 8; breg4 0; lit2; shl; plus; plus_uconst 16
  EXPECT_EQ(
      arg_at(".byte 0x75; .sleb128 8; .byte 0x74; .sleb128 0; .byte 0x32, 0x24, 0x22, 0x23; .uleb128 16").location,
      Location(Memory{.displacement = 24, .base = reg("rdi"), .index = reg("rsi"), .shift = 2}));
  // breg5 0; breg4 0; lit4; mul; plus; lit8; minus
  EXPECT_EQ(arg_at(".byte 0x75; .sleb128 0; .byte 0x74; .sleb128 0; .byte 0x34, 0x1e, 0x22, 0x38, 0x1c").location,
            Location(Memory{
                .displacement = static_cast<std::uint64_t>(-8), .base = reg("rdi"), .index = reg("rsi"), .shift = 2}));
  // three registers
  EXPECT_THAT(reason(arg_at(".byte 0x75, 0, 0x74, 0, 0x22, 0x71, 0, 0x22")), testing::HasSubstr("more than two"));
}

TEST_F(Expressions, a_stack_value_is_the_value_itself) {
  EXPECT_EQ(arg_at(".byte 0x75; .sleb128 3; .byte 0x9f").location,
            Location(Memory{.displacement = 3, .base = reg("rdi"), .is_value = true}));
  EXPECT_EQ(arg_at(".byte 0x75; .sleb128 0; .byte 0x9f").location, Location(Register{.id = reg("rdi")}));
  EXPECT_EQ(arg_at(".byte 0x3a, 0x9f").location, Location(Constant{10}));                                // lit10
  EXPECT_EQ(arg_at(".byte 0x09, 0xfe, 0x9f", true, 4, 5).location, Location(Constant{UINT64_MAX - 1}));  // const1s -2
  EXPECT_EQ(arg_at(".byte 0x11; .sleb128 -2; .byte 0x9f", true, 4, 7).location, Location(Constant{0xfffffffe}));
}

TEST_F(Expressions, what_is_loaded_last_is_memory) {
  const Location at_rdi = Memory{.displacement = 8, .base = reg("rdi")};
  EXPECT_EQ(arg_at(".byte 0x75; .sleb128 8; .byte 0x06, 0x9f").location, at_rdi);        // deref
  const Arg narrow = arg_at(".byte 0x75; .sleb128 8; .byte 0x94, 2, 0x9f", true, 4, 5);  // deref_size 2
  EXPECT_EQ(narrow.location, at_rdi);
  EXPECT_EQ(narrow.type, (Type{.size = 2, .is_signed = false}));
  EXPECT_THAT(reason(arg_at(".byte 0x75; .sleb128 8; .byte 0x06")), testing::HasSubstr("behind a pointer in memory"));
}

TEST_F(Expressions, a_mask_makes_the_type_narrower) {
  // breg5 0; const1u 0xff; and; stack_value
  const Arg byte = arg_at(".byte 0x75; .sleb128 0; .byte 0x08, 0xff, 0x1a, 0x9f", true, 4, 5);
  EXPECT_EQ(byte.location, Location(Register{.id = reg("rdi")}));
  EXPECT_EQ(byte.type, (Type{.size = 1, .is_signed = false}));
  EXPECT_THAT(reason(arg_at(".byte 0x75; .sleb128 0; .byte 0x08, 0xf0, 0x1a, 0x9f")), testing::HasSubstr("computed"));
}

TEST_F(Expressions, a_conversion_extends_by_sign) {
  // breg5 0; convert int; stack_value
  const Arg value = arg_at(".byte 0x75; .sleb128 0; .byte 0xa8; .uleb128 .Lsigned32 - .Lunit; .byte 0x9f", true, 8, 5);
  EXPECT_EQ(value.location, Location(Register{.id = reg("rdi")}));
  EXPECT_EQ(value.type, (Type{.size = 4, .is_signed = true}));
}

TEST_F(Expressions, an_implicit_value_is_a_constant) {
  EXPECT_EQ(arg_at(".byte 0x9e, 4; .long 0x12345678", true, 4, 7).location, Location(Constant{0x12345678}));
  EXPECT_THAT(reason(arg_at(".byte 0x9e, 2; .short 1", true, 4, 7)), testing::HasSubstr("fewer bytes"));
}

TEST_F(Expressions, pieces_are_one_value_where_they_lie_side_by_side) {
  EXPECT_EQ(arg_at(".byte 0x55, 0x93, 8").location, Location(Register{.id = reg("rdi")}));
  EXPECT_EQ(arg_at(".byte 0x75, 0, 0x93, 4, 0x75, 4, 0x93, 4").location, Location(Memory{.base = reg("rdi")}));
  EXPECT_THAT(reason(arg_at(".byte 0x75, 0, 0x93, 4, 0x74, 4, 0x93, 4")), testing::HasSubstr("in 2 pieces"));
  EXPECT_THAT(pieces_, testing::SizeIs(2));
  EXPECT_THAT(reason(arg_at(".byte 0x93, 4, 0x74, 4, 0x93, 4")), testing::HasSubstr("4 of its 8 bytes: optimised out"));
}

TEST_F(Expressions, a_piece_may_be_a_part_of_a_register) {
  // breg5 0; stack_value; piece 4; breg5 0; const1u 32; shr; stack_value; piece 4
  const std::string_view halves = ".byte 0x75, 0, 0x9f, 0x93, 4, 0x75, 0, 0x08, 32, 0x25, 0x9f, 0x93, 4";
  EXPECT_THAT(reason(arg_at(halves)), testing::HasSubstr("in 2 pieces"));
  ASSERT_THAT(pieces_, testing::SizeIs(2));
  for (const Piece& each : pieces_) EXPECT_EQ(each.location, Location(Register{.id = reg("rdi")}));
  EXPECT_EQ(pieces_[0].dropped, 0);
  EXPECT_EQ(pieces_[1].dropped, 4);
  // More of it than there is, single bits, and a shift of the whole.
  EXPECT_THAT(reason(arg_at(".byte 0x75, 0, 0x9f, 0x93, 4, 0x75, 0, 0x08, 40, 0x25, 0x9f, 0x93, 4")),
              testing::HasSubstr("4 of its 8 bytes: computed"));
  EXPECT_THAT(reason(arg_at(".byte 0x75, 0, 0x9f, 0x93, 4, 0x75, 0, 0x33, 0x25, 0x9f, 0x93, 4")),
              testing::HasSubstr("shifted bits"));
  EXPECT_THAT(reason(arg_at(".byte 0x75, 0, 0x08, 32, 0x25, 0x9f")), testing::HasSubstr("shifted bits"));
}

TEST_F(Expressions, an_entry_value_is_the_register_when_the_function_begins) {
  EXPECT_EQ(arg_at(".byte 0xa3, 1, 0x55, 0x9f").location, Location(Register{.id = reg("rdi")}));
  EXPECT_EQ(arg_at(".byte 0xf3, 1, 0x55, 0x9f").location, Location(Register{.id = reg("rdi")}));  // GNU
}

TEST_F(Expressions, the_call_frame_is_the_stack_pointer_when_the_function_begins) {
  EXPECT_EQ(arg_at(".byte 0x91; .sleb128 16").location,  // fbreg
            Location(Memory{.displacement = 24, .base = reg("rsp")}));
  EXPECT_EQ(arg_at(".byte 0x9c, 0x23, 8").location, Location(Memory{.displacement = 16, .base = reg("rsp")}));
}

TEST_F(Expressions, a_slot_below_the_frame_is_left_to_the_calling_convention) {
  for (const bool list : {true, false})
    EXPECT_EQ(arg_at(".byte 0x91; .sleb128 -24", list).location, Location(Register{.id = reg("rdi")}));
  // A register that no caller passes anything in.
  EXPECT_EQ(arg_at(".byte 0x53", false).location, Location(Register{.id = reg("rdi")}));
}

TEST_F(Expressions, a_whole_function_place_that_contradicts_the_convention_is_not_believed) {
  EXPECT_THAT(reason(arg_at(".byte 0x91; .sleb128 0", false)), testing::HasSubstr("by a calling convention"));
}

TEST_F(Expressions, what_is_gone_says_so) {
  EXPECT_THAT(reason(arg_at("")), testing::HasSubstr("optimised out"));
  EXPECT_THAT(reason(arg_at(".byte 0xa0; .long .Ltype - .Lunit; .byte 0")), testing::HasSubstr("optimised out"));
  EXPECT_THAT(reason(arg_at(".byte 0xe0")), testing::HasSubstr("thread-local"));
}

TEST_F(Expressions, broken_ones_are_unreadable) {
  for (const std::string_view broken :
       {".byte 0x22", ".byte 0x9f", ".byte 0x55, 0x55", ".byte 0xff", ".byte 0x55, 0x93, 4, 0x54",
        ".rept 60; .byte 0x31; .endr", ".rept 400; .byte 0x96; .endr", ".byte 0xa3, 2, 0x31, 0x9f"})
    EXPECT_FALSE(arg_at(broken).readable()) << broken;
}

}  // namespace
}  // namespace usdt::test
