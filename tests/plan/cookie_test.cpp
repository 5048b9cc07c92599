// SPDX-License-Identifier: BSD-2-Clause
// Packed cookies against their format (bpf/include/usdt/bpf/cookie.h), bit by bit. The bits are written down here field
// by field, the highest first, so that every expectation can be read beside that table.
#include "usdt/cookie.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/arg_specs.hpp"
#include "usdt/bpf/cookie.h"

namespace usdt {
namespace {

using test::arg_of;
using test::Args;
using test::constant;
using test::indexed;
using test::mem;
using test::reg;
using testing::HasSubstr;

constexpr auto kX64 = Machine::x86_64;
constexpr auto kI386 = Machine::i386;
constexpr auto kArm = Machine::aarch64;

// Words of pt_regs as the kernels' headers order them (asm/ptrace.h).
constexpr unsigned kBp = 4, kBx = 5, kAx = 10, kCx = 11, kDi = 14, kOrigAx = 15, kIp = 16, kSp = 19;
constexpr unsigned kArmX0 = 0, kArmX30 = 30, kArmSp = 31, kArmPc = 32;

usdt_arg_spec unreadable(unsigned size) { return arg_of(USDT_ARG_UNREADABLE, size); }

usdt_arg_spec ip_relative(std::int64_t distance, unsigned size, unsigned flags = 0) {
  return mem(distance, USDT_REG_NONE, size, flags | USDT_ARG_IP);
}

/// Tag 01, number of arguments, ADDR32 bit: the six highest bits.
constexpr std::uint64_t head(std::uint64_t count, std::uint64_t addr32 = 0) {
  return std::uint64_t{0b01} << 62 | count << 59 | addr32 << 58;
}

std::string text_of(const usdt_arg_spec& arg) {
  std::string text;
  for (const unsigned field : {unsigned{arg.kind}, unsigned{arg.flags}, unsigned{arg.size}, unsigned{arg.reg},
                               unsigned{arg.index}, unsigned{arg.shift}, unsigned{arg.capture}, unsigned{arg.window}})
    text += std::to_string(field) + " ";
  return text + std::to_string(static_cast<std::int64_t>(arg.value));
}

std::vector<std::string> texts_of(const Args& args) {
  std::vector<std::string> texts;
  for (const usdt_arg_spec& arg : args) texts.push_back(text_of(arg));
  return texts;
}

void expect_cookie(Machine machine, const Args& args, std::uint64_t cookie) {
  const auto packed = pack_cookie(machine, args);
  ASSERT_TRUE(packed) << testing::PrintToString(texts_of(args));
  EXPECT_EQ(*packed, cookie) << std::hex << *packed << ", expected " << cookie;
  const auto back = unpack_cookie(machine, cookie);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(texts_of(*back), texts_of(args));
}

void expect_unfit(Machine machine, const Args& args) {
  EXPECT_FALSE(pack_cookie(machine, args)) << testing::PrintToString(texts_of(args));
}

TEST(Cookie, of_no_arguments_is_its_tag_alone) { expect_cookie(kX64, {}, 0x4000000000000000); }

TEST(Cookie, has_one_form_for_each_kind_of_operand_of_x86) {
  // 4@%eax: register 10, type 2 (four bytes, unsigned), form 0
  expect_cookie(kX64, {reg(kAx, 4)}, head(1) | 0b1010'010'0);
  // -1@%dil
  expect_cookie(kX64, {reg(kDi, 1, USDT_ARG_SIGNED)}, head(1) | 0b1110'100'0);
  // -8@-8(%rbp)
  expect_cookie(kX64, {mem(-8, kBp, 8, USDT_ARG_SIGNED)}, head(1) | 0b1111111000'0100'111'01);
  // 8@512(%rbx)
  expect_cookie(kX64, {mem(512, kBx, 8)}, head(1) | 0b000000001000000000'0101'011'011);
  // -4@$-1
  expect_cookie(kX64, {constant(-1, 4, USDT_ARG_SIGNED)}, head(1) | 0b1111111111'110'0111);
  // -4@$65536
  expect_cookie(kX64, {constant(65536, 4, USDT_ARG_SIGNED)}, head(1) | 0b00000000000000010000000000000000'110'0011111);
  // an eight-byte operand nobody can read
  expect_cookie(kX64, {unreadable(8)}, head(1) | 0b1000'0001111);
  // 4@global(%rip), 0x2ff0 behind the site
  expect_cookie(kX64, {ip_relative(0x2ff0, 4)}, head(1) | 0b00000000000000000010111111110000'010'0101111);
  // 1@%ah
  expect_cookie(kX64, {reg(kAx, 1, 0, 8)}, head(1) | 0b1010'000'0111111);
  // 2@-2(%rbx,%rcx,4)
  expect_cookie(kX64, {indexed(-2, kBx, kCx, 2, 2)}, head(1) | 0b10'1011'111111111110'0101'001'1001111);
  // 8f@16(%rbp)
  expect_cookie(kX64, {mem(16, kBp, 8, USDT_ARG_FLOAT)}, head(1) | 0b000000000000010000'0100'011'1011111);
  // 4f@%ebx
  expect_cookie(kX64, {reg(kBx, 4, USDT_ARG_FLOAT)}, head(1) | 0b0101'010'1101111);
}

TEST(Cookie, has_five_bits_for_registers_of_arm64) {
  // 4@w30 and -8@x0
  expect_cookie(kArm, {reg(kArmX30, 4)}, head(1) | 0b11110'010'0);
  expect_cookie(kArm, {reg(kArmX0, 8, USDT_ARG_SIGNED)}, head(1) | 0b00000'111'0);
  // 8@[sp, 24]
  expect_cookie(kArm, {mem(24, kArmSp, 8)}, head(1) | 0b0000011000'11111'011'01);
  // 4@[x19, 4000]
  expect_cookie(kArm, {mem(4000, 19, 4)}, head(1) | 0b000000111110100000'10011'010'011);
  // -4@[x20, x3, lsl 2]
  expect_cookie(kArm, {indexed(0, 20, 3, 2, 4, USDT_ARG_SIGNED)}, head(1) | 0b10'00011'000000000000'10100'110'1001111);
  // 8f@[x1, 8]
  expect_cookie(kArm, {mem(8, 1, 8, USDT_ARG_FLOAT)}, head(1) | 0b000000000000001000'00001'011'1011111);
}

TEST(Cookie, says_once_that_the_addresses_of_i386_wrap) {
  // 4@8(%ebp)
  expect_cookie(kI386, {mem(8, kBp, 4, USDT_ARG_ADDR32)}, head(1, 1) | 0b0000001000'0100'010'01);
  // -4@-12(%esp), the stack pointer being register 15
  expect_cookie(kI386, {mem(-12, kSp, 4, USDT_ARG_ADDR32 | USDT_ARG_SIGNED)}, head(1, 1) | 0b1111110100'1111'110'01);
  // 4@(%ebx,%eax,8) 4@%eax: the bit is about memory only
  expect_cookie(kI386, {indexed(0, kBx, kAx, 3, 4, USDT_ARG_ADDR32), reg(kAx, 4)},
                head(2, 1) | 0b1010'010'0ULL << 32 | 0b11'1010'000000000000'0101'010'1001111);
  // 4f@8(%ebp)
  expect_cookie(kI386, {mem(8, kBp, 4, USDT_ARG_FLOAT | USDT_ARG_ADDR32)},
                head(1, 1) | 0b000000000000001000'0100'010'1011111);
}

TEST(Cookie, puts_arguments_one_after_the_other_from_bit_0) {
  // 8@%rax -4@$5 1@%cl: widths 8, 17, 8
  expect_cookie(kX64, {reg(kAx, 8), constant(5, 4, USDT_ARG_SIGNED), reg(kCx, 1)},
                head(3) | 0b1011'000'0ULL << 25 | 0b0000000101'110'0111ULL << 8 | 0b1010'011'0);
}

TEST(Cookie, holds_seven_registers_and_not_eight) {
  const Args seven(7, reg(kAx, 8));
  expect_cookie(kX64, seven, head(7) | 0xa6a6a6a6a6a6a6);
  expect_unfit(kX64, Args(8, reg(kAx, 8)));
  expect_unfit(kArm, Args(7, reg(kArmX0, 8)));  // 7 * 9 bits
}

TEST(Cookie, names_every_register) {
  for (unsigned word = 0; word < 15; ++word) expect_cookie(kX64, {reg(word, 8)}, head(1) | word << 4 | 0b011'0);
  expect_cookie(kX64, {reg(kSp, 8)}, head(1) | 0b1111'011'0);
  for (const unsigned word : {4U, 5U, 10U, 11U, 12U, 13U, 14U})
    expect_cookie(kI386, {reg(word, 4)}, head(1) | word << 4 | 0b010'0);
  expect_cookie(kI386, {reg(kSp, 4)}, head(1) | 0b1111'010'0);
  for (unsigned word = 0; word < 32; ++word) expect_cookie(kArm, {reg(word, 8)}, head(1) | word << 4 | 0b011'0);
}

TEST(Cookie, names_every_register_as_base_and_index) {
  for (unsigned word = 0; word < 32; ++word) {
    expect_cookie(kArm, {indexed(0, word, 31 - word, 0, 8)}, head(1) | (31 - word) << 27 | word << 10 | 0b011'1001111);
    if (word < 15) expect_cookie(kX64, {indexed(0, kSp, word, 0, 8)}, head(1) | word << 26 | 0b1111'011'1001111);
    if (word < 15) expect_cookie(kX64, {indexed(0, word, kSp, 0, 8)}, head(1) | 0xf << 26 | word << 10 | 0b011'1001111);
  }
}

TEST(Cookie, has_no_code_for_what_is_no_general_register) {
  for (const unsigned word : {kOrigAx, kIp, 17U, 18U, 20U, 255U}) {
    expect_unfit(kX64, {reg(word, 8)});
    expect_unfit(kX64, {mem(0, word, 8)});
    expect_unfit(kI386, {reg(word, 4)});
    if (word != USDT_REG_NONE) expect_unfit(kX64, {indexed(0, kAx, word, 0, 8)});
  }
  expect_unfit(kArm, {reg(kArmPc, 8)});
  expect_unfit(kArm, {mem(0, USDT_REG_NONE, 8)});
}

/// Bits that one argument takes: the widest site number that still fits beside it tells.
std::optional<unsigned> width_of(Machine machine, const usdt_arg_spec& arg) {
  std::optional<unsigned> width;
  for (unsigned site_bits = 0; site_bits <= USDT_PACKED_BITS; ++site_bits) {
    const auto packed = pack_cookie(machine, Args{arg}, 0, site_bits);
    if (!packed) break;
    EXPECT_EQ(texts_of(*unpack_cookie(machine, *packed)), texts_of({arg}));
    width = USDT_PACKED_BITS - site_bits;
  }
  return width;
}

std::optional<unsigned> width_of(const usdt_arg_spec& arg) { return width_of(kX64, arg); }

TEST(Cookie, takes_the_shortest_form_that_holds_the_displacement) {
  for (const int near : {-512, -511, -1, 0, 510, 511}) EXPECT_EQ(width_of(mem(near, kAx, 8)), 19) << near;
  for (const int far : {-131072, -513, 512, 131071}) EXPECT_EQ(width_of(mem(far, kAx, 8)), 28) << far;
  for (const int beyond : {-131073, 131072}) EXPECT_EQ(width_of(mem(beyond, kAx, 8)), std::nullopt) << beyond;
  EXPECT_EQ(width_of(mem(std::numeric_limits<std::int64_t>::min(), kAx, 8)), std::nullopt);
  EXPECT_EQ(width_of(mem(0xffffffff, kAx, 8)), std::nullopt) << "no displacement of -1";
  EXPECT_EQ(width_of(kArm, mem(511, 1, 8)), 20);
  EXPECT_EQ(width_of(kArm, mem(512, 1, 8)), 29);
}

TEST(Cookie, holds_twelve_bits_of_displacement_beside_an_index) {
  for (const int inside : {-2048, 2047}) EXPECT_EQ(width_of(indexed(inside, kAx, kBx, 3, 8)), 32) << inside;
  for (const int beyond : {-2049, 2048}) EXPECT_EQ(width_of(indexed(beyond, kAx, kBx, 3, 8)), std::nullopt) << beyond;
  EXPECT_EQ(width_of(kArm, indexed(2047, 1, 2, 3, 8)), 34);
}

TEST(Cookie, holds_eighteen_bits_of_displacement_of_floats) {
  for (const int inside : {-131072, 0, 131071}) EXPECT_EQ(width_of(mem(inside, kAx, 8, USDT_ARG_FLOAT)), 32) << inside;
  for (const int beyond : {-131073, 131072})
    EXPECT_EQ(width_of(mem(beyond, kAx, 8, USDT_ARG_FLOAT)), std::nullopt) << beyond;
}

TEST(Cookie, holds_thirty_two_bits_of_distance_from_the_instruction_pointer) {
  constexpr std::int64_t k2G = 1LL << 31;
  for (const std::int64_t inside : {-k2G, -1L, 0L, k2G - 1}) EXPECT_EQ(width_of(ip_relative(inside, 4)), 42) << inside;
  for (const std::int64_t beyond : {-k2G - 1, k2G}) EXPECT_EQ(width_of(ip_relative(beyond, 4)), std::nullopt) << beyond;
}

TEST(Cookie, holds_constants_of_every_size_and_sign) {
  constexpr unsigned kS = USDT_ARG_SIGNED;
  constexpr std::int64_t k2G = 1LL << 31;
  for (const unsigned size : {1U, 2U, 4U, 8U}) {
    for (const int value : {-128, -1, 0, 127})
      EXPECT_EQ(width_of(constant(value, size, kS)), 17) << size << " " << value;
    EXPECT_EQ(width_of(constant(0, size)), 17);
  }
  for (const int value : {-512, 511}) EXPECT_EQ(width_of(constant(value, 2, kS)), 17) << value;
  for (const int value : {-32768, -513, 512, 32767}) EXPECT_EQ(width_of(constant(value, 2, kS)), 42) << value;
  for (const std::int64_t value : {-k2G, -513L, 512L, k2G - 1}) {
    EXPECT_EQ(width_of(constant(value, 4, kS)), 42) << value;
    EXPECT_EQ(width_of(constant(value, 8, kS)), 42) << value;
  }
  for (const std::int64_t value : {-k2G - 1, k2G}) EXPECT_EQ(width_of(constant(value, 8, kS)), std::nullopt) << value;
  // What the size cuts off need not be stored: 255 and -1 are the same byte.
  EXPECT_EQ(width_of(constant(255, 1)), 17);
  EXPECT_EQ(width_of(constant(65535, 2)), 17);
  EXPECT_EQ(width_of(constant(4294967295, 4)), 17);
  EXPECT_EQ(width_of(constant(-1, 8)), 17) << "2^64 - 1";
  EXPECT_EQ(width_of(constant(32768, 2)), 42);
  EXPECT_EQ(width_of(constant(k2G, 4)), 42);
  EXPECT_EQ(width_of(constant(4294967295, 8)), std::nullopt);
}

TEST(Cookie, takes_these_bits_for_the_other_forms) {
  EXPECT_EQ(width_of(reg(kAx, 8)), 8);
  EXPECT_EQ(width_of(kArm, reg(kArmX0, 8)), 9);
  EXPECT_EQ(width_of(reg(kAx, 1, USDT_ARG_SIGNED, 8)), 14);
  EXPECT_EQ(width_of(reg(kAx, 8, USDT_ARG_FLOAT)), 14);
  for (const unsigned size : {0U, 1U, 2U, 4U, 8U, 15U}) EXPECT_EQ(width_of(unreadable(size)), 11) << size;
}

TEST(Cookie, has_no_form_for_rare_specs) {
  usdt_arg_spec captured = reg(kDi, 8);
  captured.capture = 1;
  expect_unfit(kX64, {captured});
  usdt_arg_spec pair = reg(kAx, 8, USDT_ARG_PAIR);
  pair.index = 12;
  expect_unfit(kI386, {pair});
  usdt_arg_spec address = arg_of(USDT_ARG_ADDR, 8, 0, 16);
  address.reg = kAx;
  expect_unfit(kX64, {address});
  expect_unfit(kArm, {indexed(0, 1, 2, 2, 4, USDT_ARG_INDEX_U32)});
  expect_unfit(kArm, {indexed(0, 1, 2, 2, 4, USDT_ARG_INDEX_S32)});
  expect_unfit(kArm, {indexed(0, 1, 2, 4, 4)});  // "q" registers are scaled by 16
  expect_unfit(kX64, {indexed(0, kAx, kBx, 0, 8, USDT_ARG_FLOAT)});
  expect_unfit(kX64, {ip_relative(8, 8, USDT_ARG_FLOAT)});
  expect_unfit(kX64, {mem(-8, kAx, 8, USDT_ARG_THREAD)});
  expect_unfit(kX64, {reg(kAx, 4, 0, 16)});
  expect_unfit(kX64, {unreadable(16)});
  expect_unfit(kX64, {arg_of(77, 8, 0, 0)});
}

TEST(Cookie, refuses_memory_that_wraps_beside_memory_that_does_not) {
  expect_unfit(kX64, {mem(0, kAx, 8), mem(0, kBx, 8, USDT_ARG_ADDR32)});
  EXPECT_TRUE(pack_cookie(kX64, Args{mem(0, kAx, 8, USDT_ARG_ADDR32), mem(0, kBx, 8, USDT_ARG_ADDR32)}));
}

TEST(Cookie, refuses_specs_that_contradict_themselves) {
  for (const unsigned size : {0U, 3U, 5U, 9U, 16U, 128U, 255U}) {
    expect_unfit(kX64, {constant(1, size)});
    expect_unfit(kX64, {reg(kAx, size)});
    expect_unfit(kX64, {mem(0, kAx, size)});
  }
  expect_unfit(kX64, {constant(256, 1)});
  expect_unfit(kX64, {constant(-1, 4)});  // unsigned, and not cut to its size
  expect_unfit(kX64, {constant(128, 1, USDT_ARG_SIGNED)});
}

TEST(Cookie, keeps_no_windows) {
  usdt_arg_spec windowed = mem(-8, kBp, 8, USDT_ARG_SIGNED);
  windowed.window = USDT_WINDOW(1, 16);
  EXPECT_EQ(pack_cookie(kX64, Args{windowed}), head(1) | 0b1111111000'0100'111'01);
}

TEST(Cookie, holds_the_site_number_below_its_head) {
  const Args args{reg(kAx, 4)};
  EXPECT_EQ(pack_cookie(kX64, args, 5, 3), head(1) | 0b101ULL << 55 | 0b1010'010'0);
  EXPECT_EQ(pack_cookie(kX64, args, 1, 30), head(1) | 1ULL << 28 | 0b1010'010'0);
  EXPECT_EQ(pack_cookie(kX64, args, (1U << 30) - 1, 30), head(1) | 0x3fffffffULL << 28 | 0b1010'010'0);
  EXPECT_EQ(USDT_PACKED_SITE(*pack_cookie(kX64, args, 5, 3), 3), 5U);
  EXPECT_EQ(USDT_PACKED_SITE(*pack_cookie(kX64, args, 0x2aaaaaaa, 30), 30), 0x2aaaaaaaU);
  EXPECT_EQ(USDT_PACKED_SITE(*pack_cookie(kX64, args), 0), 0U);
  const auto back = unpack_cookie(kX64, *pack_cookie(kX64, args, 0x3fffffff, 30));
  ASSERT_TRUE(back);
  EXPECT_EQ(texts_of(*back), texts_of(args));
}

TEST(Cookie, has_room_for_the_site_number_or_does_not_fit) {
  const Args args{mem(512, kAx, 8), mem(512, kAx, 8)};  // 28 bits each
  EXPECT_TRUE(pack_cookie(kX64, args, 3, 2));
  EXPECT_FALSE(pack_cookie(kX64, args, 3, 3));
  EXPECT_FALSE(pack_cookie(kX64, {}, 0, USDT_PACKED_BITS + 1));
  EXPECT_FALSE(pack_cookie(kX64, {}, 0, std::numeric_limits<unsigned>::max()));
}

TEST(Cookie, refuses_a_site_number_of_more_bits_than_given) {
  EXPECT_FALSE(pack_cookie(kX64, {}, 8, 3)) << "it would change the head";
  EXPECT_FALSE(pack_cookie(kX64, {}, 1, 0));
  EXPECT_TRUE(pack_cookie(kX64, {}, 7, 3));
  EXPECT_TRUE(pack_cookie(kX64, {}, 0xffffffff, 32));
}

TEST(Cookie, of_another_carrier_is_malformed) {
  for (const std::uint64_t tag : {0ULL, 2ULL, 3ULL}) {
    const auto args = unpack_cookie(kX64, tag << 62 | 1ULL << 59 | 0b1010'010'0);
    ASSERT_FALSE(args) << tag;
    EXPECT_EQ(args.error().kind, ErrorKind::malformed);
    EXPECT_THAT(args.error().message, HasSubstr("no packed spec of version 1"));
  }
}

TEST(Cookie, of_a_form_there_is_not_is_malformed) {
  const auto args = unpack_cookie(kX64, head(2) | 0b1111111ULL << 8 | 0b1010'010'0);
  ASSERT_FALSE(args);
  EXPECT_EQ(args.error().kind, ErrorKind::malformed);
  EXPECT_THAT(args.error().message, HasSubstr("argument 1 has no form"));
}

TEST(Cookie, whose_arguments_reach_into_its_head_is_malformed) {
  // Two constants of 42 bits each.
  const auto args = unpack_cookie(kX64, head(2) | 0b0011111ULL << 42 | 0b0011111);
  ASSERT_FALSE(args);
  EXPECT_EQ(args.error().kind, ErrorKind::malformed);
}

/// Specs of which the format can say about half.
class RandomSpecs {
 public:
  explicit RandomSpecs(std::uint32_t seed) : random_(seed) {}

  Args next() {
    addr32_ = one_in(3) ? USDT_ARG_ADDR32 : 0;
    Args args;
    for (std::size_t left = random_() % 9; left > 0; --left) args.push_back(arg());
    return args;
  }
  std::uint32_t below(std::uint32_t count) { return static_cast<std::uint32_t>(random_() % count); }

 private:
  bool one_in(std::uint32_t count) { return below(count) == 0; }

  usdt_arg_spec arg() {
    const unsigned size = one_in(50) ? below(256) : 1U << below(4);
    usdt_arg_spec arg = arg_of(one_in(50) ? below(8) : below(4), size, flags(), number());
    arg.reg = word();
    if (one_in(6)) arg.index = word();
    if (arg.index != USDT_REG_NONE) arg.shift = static_cast<std::uint8_t>(below(4));
    if (arg.kind == USDT_ARG_REG && one_in(6)) arg.shift = 8;
    if (one_in(100)) arg.capture = 1;
    if (one_in(4)) return arg;
    // Most are what the planner writes.
    if (arg.kind == USDT_ARG_UNREADABLE) return unreadable(size % 16);
    if (arg.kind == USDT_ARG_REG) arg.value = 0;
    if (arg.kind == USDT_ARG_CONST && size > 0 && size <= 8) return cut(arg);
    if ((arg.flags & USDT_ARG_IP) != 0) arg.reg = USDT_REG_NONE;
    return arg;
  }

  static usdt_arg_spec cut(const usdt_arg_spec& arg) {
    const unsigned spare = 64 - 8U * arg.size;
    const auto value = static_cast<std::int64_t>(arg.value << spare);
    return (arg.flags & USDT_ARG_SIGNED) != 0
               ? constant(value >> spare, arg.size, USDT_ARG_SIGNED)
               : constant(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) >> spare), arg.size);
  }
  unsigned flags() {
    unsigned flags = addr32_;
    if (one_in(2)) flags |= USDT_ARG_SIGNED;
    if (one_in(12)) flags |= USDT_ARG_IP;
    if (one_in(12)) flags = (flags & ~unsigned{USDT_ARG_SIGNED}) | USDT_ARG_FLOAT;
    return one_in(50) ? below(128) : flags;
  }
  std::uint64_t number() {
    const auto bits = static_cast<std::uint64_t>(random_());
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) >> (one_in(3) ? below(64) : 52 + below(12)));
  }
  std::uint8_t word() { return static_cast<std::uint8_t>(one_in(30) ? below(256) : below(20)); }

  std::mt19937_64 random_;
  unsigned addr32_ = 0;
};

class AnyMachine : public testing::TestWithParam<Machine> {};
INSTANTIATE_TEST_SUITE_P(Machines, AnyMachine, testing::Values(kX64, kI386, kArm),
                         [](const auto& machine) { return std::string(to_string(machine.param)); });

TEST_P(AnyMachine, reads_back_what_it_packs) {
  RandomSpecs specs(1);
  int fit = 0, of_three = 0;
  for (int i = 0; i < 100000 && !HasFailure(); ++i) {
    const Args args = specs.next();
    const unsigned site_bits = specs.below(12);
    const std::uint32_t site = specs.below(1U << site_bits);
    const auto cookie = pack_cookie(GetParam(), args, site, site_bits);
    if (!cookie) continue;
    ++fit;
    of_three += args.size() > 2 ? 1 : 0;
    const auto back = unpack_cookie(GetParam(), *cookie);
    ASSERT_TRUE(back) << back.error().message;
    ASSERT_EQ(back->size(), args.size());
    EXPECT_TRUE(args.empty() || std::memcmp(back->data(), args.data(), args.size() * sizeof(usdt_arg_spec)) == 0)
        << testing::PrintToString(texts_of(args)) << " became " << testing::PrintToString(texts_of(*back));
    EXPECT_EQ(USDT_PACKED_SITE(*cookie, site_bits), site);
    EXPECT_EQ(USDT_PACKED_COUNT(*cookie), args.size());
  }
  EXPECT_GT(fit, 20000);
  EXPECT_GT(of_three, 1000);
}

TEST_P(AnyMachine, unpacks_any_bits_or_says_why_not) {
  std::mt19937_64 random(2);
  int known = 0;
  for (int i = 0; i < 100000 && !HasFailure(); ++i) {
    const std::uint64_t cookie = (random() & ~(3ULL << 62)) | std::uint64_t{USDT_CARRIER_COOKIE} << 62;
    const auto args = unpack_cookie(GetParam(), cookie);
    if (!args) continue;
    ++known;
    for (const usdt_arg_spec& arg : *args) {
      EXPECT_LE(arg.kind, USDT_ARG_MEM);
      EXPECT_LE(arg.size, 15);
      EXPECT_TRUE(arg.reg < 32 || arg.reg == USDT_REG_NONE) << int{arg.reg};
      EXPECT_TRUE(arg.index < 32 || arg.index == USDT_REG_NONE) << int{arg.index};
      EXPECT_EQ(arg.capture, 0);
      EXPECT_EQ(arg.window, 0);
    }
    // Where nothing but their own bits is set, the arguments pack to what they came from, or to a shorter form.
    const auto again = pack_cookie(GetParam(), *args);
    if (!again) continue;
    EXPECT_EQ(texts_of(*unpack_cookie(GetParam(), *again)), texts_of(*args)) << std::hex << cookie;
  }
  EXPECT_GT(known, 20000);
}

}  // namespace
}  // namespace usdt
