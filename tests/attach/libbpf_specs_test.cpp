// SPDX-License-Identifier: BSD-2-Clause
#include "attach/libbpf_specs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace usdt::backends {
namespace {

using testing::Each;
using testing::ElementsAreArray;

/// libbpf 0.8 to 1.6, src/usdt.bpf.h: 16 bytes an argument.
constexpr LibbpfLayout kPlain{.spec_bytes = 208,
                              .arg_bytes = 16,
                              .max_args = 12,
                              .cookie = {1536, 64},
                              .arg_cnt = {1600, 16},
                              .value = {0, 64},
                              .type = {64, 32},
                              .base = {96, 16},
                              .index = {},
                              .scale = {},
                              .is_signed = {112, 8},
                              .spare_bits = {120, 8}};
/// libbpf 1.7 as clang 14 lays it out: 24 bytes an argument, and an index register.
constexpr LibbpfLayout kIndexed{.spec_bytes = 304,
                                .arg_bytes = 24,
                                .max_args = 12,
                                .cookie = {2304, 64},
                                .arg_cnt = {2368, 16},
                                .value = {0, 64},
                                .type = {64, 8},
                                .base = {112, 16},
                                .index = {80, 12},
                                .scale = {92, 4},
                                .is_signed = {128, 8},
                                .spare_bits = {136, 8}};

using Bytes = std::vector<std::uint8_t>;

Bytes spec_bytes(const LibbpfLayout& layout, const EncodedSpec& spec, const LibbpfSites& sites = {}) {
  Bytes bytes(layout.spec_bytes, 0xee);
  write_libbpf_spec(std::as_writable_bytes(std::span(bytes)), layout, spec, sites);
  return bytes;
}

/// The bytes of a spec's only argument.
Bytes arg_bytes(const usdt_arg_spec& arg, const LibbpfLayout& layout = kPlain, const LibbpfSites& sites = {}) {
  Bytes bytes = spec_bytes(layout, {0, {arg}}, sites);
  bytes.resize(layout.arg_bytes);
  return bytes;
}

usdt_arg_spec memory(std::uint8_t reg, std::int64_t displacement, std::uint8_t size = 8) {
  return {.value = static_cast<std::uint64_t>(displacement),
          .kind = USDT_ARG_MEM,
          .flags = 0,
          .size = size,
          .reg = reg,
          .index = USDT_REG_NONE,
          .shift = 0,
          .capture = 0,
          .window = 0};
}

usdt_arg_spec in_register(std::uint8_t reg, std::uint8_t size, std::uint8_t shift = 0) {
  usdt_arg_spec arg = memory(reg, 0, size);
  arg.kind = USDT_ARG_REG;
  arg.shift = shift;
  return arg;
}

usdt_arg_spec indexed(std::uint8_t reg, std::uint8_t index, std::uint8_t shift, std::int64_t displacement) {
  usdt_arg_spec arg = memory(reg, displacement);
  arg.index = index;
  arg.shift = shift;
  return arg;
}

usdt_arg_spec with(usdt_arg_spec arg, unsigned flags) {
  arg.flags = static_cast<std::uint8_t>(arg.flags | flags);
  return arg;
}

bool has_no_form(const usdt_arg_spec& arg, const LibbpfLayout& layout = kPlain, const LibbpfSites& sites = {}) {
  return arg_bytes(arg, layout, sites)[8] == 0x7f;
}

TEST(LibbpfSpec, HasTheBytesOfAConstant) {
  usdt_arg_spec arg = with(memory(USDT_REG_NONE, -9, 4), USDT_ARG_SIGNED);
  arg.kind = USDT_ARG_CONST;
  EXPECT_THAT(arg_bytes(arg), ElementsAreArray({0xf7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,  // value
                                                0, 0, 0, 0,                                      // type
                                                0, 0, 1, 32}));  // register, sign, spare
}

TEST(LibbpfSpec, HasTheBytesOfARegister) {
  EXPECT_THAT(arg_bytes(in_register(14, 8)), ElementsAreArray({0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 112, 0, 0, 0}));
}

TEST(LibbpfSpec, ReadsTheSecondByteOfARegisterOneByteFurther) {
  EXPECT_THAT(arg_bytes(in_register(10, 1, 8)), ElementsAreArray({0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 81, 0, 0, 56}));
}

TEST(LibbpfSpec, HasTheBytesOfMemoryNearARegister) {
  EXPECT_THAT(arg_bytes(with(memory(19, -24, 2), USDT_ARG_SIGNED)),
              ElementsAreArray({0xe8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 152, 0, 1, 48}));
}

TEST(LibbpfSpec, TakesTheInstructionPointerAsARegister) {
  const usdt_arg_spec global = with(memory(USDT_REG_NONE, 0x1234, 4), USDT_ARG_IP);
  EXPECT_THAT(arg_bytes(global), ElementsAreArray({0x34, 0x12, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 128, 0, 0, 32}));
  EXPECT_THAT(arg_bytes(global, kPlain, {.ip_word = 32}),
              ElementsAreArray({0x34, 0x12, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 32}));
}

TEST(LibbpfSpec, HasTheBytesOfTheNewerLayout) {
  EXPECT_THAT(arg_bytes(indexed(14, 13, 3, -96), kIndexed),
              ElementsAreArray({0xa0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,  // value
                                3,    0,    104,  0x30, 0,    0,                 // type; index and scale; reserved
                                112,  0,    0,    0,    0,    0,                 // register, sign, spare
                                0,    0,    0,    0}));                          // padding
  EXPECT_THAT(arg_bytes(with(in_register(10, 1), USDT_ARG_SIGNED), kIndexed),
              ElementsAreArray({0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 80, 0, 1, 56, 0, 0, 0, 0, 0, 0}));
}

TEST(LibbpfSpec, AddsAnIndexToTheInstructionPointerWhereThereIsAnIndexAtAll) {
  const usdt_arg_spec arg = with(indexed(USDT_REG_NONE, 13, 2, 64), USDT_ARG_IP);
  EXPECT_TRUE(has_no_form(arg, kPlain));
  const Bytes bytes = arg_bytes(arg, kIndexed);
  EXPECT_EQ(bytes[8], 3);
  EXPECT_EQ(bytes[10], 104);
  EXPECT_EQ(bytes[11], 0x20);
  EXPECT_EQ(bytes[14], 128);
}

TEST(LibbpfSpec, HasNoFormForWhatWouldReadSomethingElse) {
  EXPECT_TRUE(has_no_form(indexed(14, 13, 3, 0))) << "no index register before 1.7";
  EXPECT_TRUE(has_no_form(indexed(USDT_REG_NONE, 13, 3, 0x4000), kIndexed)) << "an index without a base";
  EXPECT_TRUE(has_no_form(with(indexed(14, 13, 3, 0), USDT_ARG_INDEX_S32), kIndexed)) << "half an index register";
  EXPECT_TRUE(has_no_form(with(indexed(14, 13, 3, 0), USDT_ARG_INDEX_U32), kIndexed)) << "half an index register";
  EXPECT_TRUE(has_no_form(memory(USDT_REG_NONE, 0x4000))) << "memory without a register";
  EXPECT_TRUE(has_no_form(with(in_register(10, 8), USDT_ARG_PAIR))) << "two registers";
  EXPECT_TRUE(has_no_form(in_register(10, 8, 8))) << "seven bytes of a register and one of the next";
  EXPECT_TRUE(has_no_form(with(memory(14, 8), 1u << 7))) << "a flag of the future";
  usdt_arg_spec arg = with(memory(USDT_REG_NONE, 0x1234), USDT_ARG_IP);
  arg.kind = USDT_ARG_ADDR;
  EXPECT_TRUE(has_no_form(arg)) << "an address that is not read from";
  arg.kind = USDT_ARG_UNREADABLE;
  EXPECT_TRUE(has_no_form(arg));
}

TEST(LibbpfSpec, KeepsTheSizeOfWhatItHasNoFormFor) {
  usdt_arg_spec arg = memory(USDT_REG_NONE, 0, 4);
  arg.kind = USDT_ARG_UNREADABLE;
  EXPECT_THAT(arg_bytes(arg), ElementsAreArray({0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0, 0, 0, 0, 32}));
}

TEST(LibbpfSpec, TakesTheInstructionPointerItselfForARegister) {
  usdt_arg_spec arg = with(memory(USDT_REG_NONE, 0), USDT_ARG_IP);
  arg.kind = USDT_ARG_ADDR;
  EXPECT_THAT(arg_bytes(arg), ElementsAreArray({0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 128, 0, 0, 0}));
}

TEST(LibbpfSpec, ReadsAddressesThatWrapAt4GiBOnlyWhereNothingIsAbove) {
  const usdt_arg_spec arg = with(memory(4, 0xfffffff8, 4), USDT_ARG_ADDR32);
  EXPECT_TRUE(has_no_form(arg));
  EXPECT_THAT(arg_bytes(arg, kPlain, {.narrow_addresses = true}),
              ElementsAreArray({0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 32, 0, 0, 32}));
}

TEST(LibbpfSpec, LeavesOutArgumentsBeyondTheTwelfth) {
  for (const LibbpfLayout& layout : {kPlain, kIndexed}) {
    EncodedSpec spec{0x1122334455667788, std::vector<usdt_arg_spec>(20, in_register(10, 4))};
    const Bytes bytes = spec_bytes(layout, spec);
    const std::size_t at = std::size_t{12} * layout.arg_bytes;
    EXPECT_EQ(bytes[at - layout.arg_bytes + 8], 1) << "type of argument 12";
    EXPECT_THAT(Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end()),
                ElementsAreArray({0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 12, 0, 0, 0, 0, 0, 0, 0}));
  }
}

TEST(LibbpfSpec, OfNoArgumentsIsItsCookie) {
  const Bytes bytes = spec_bytes(kPlain, {7, {}});
  EXPECT_THAT(Bytes(bytes.begin(), bytes.begin() + 192), Each(0));
  EXPECT_THAT(Bytes(bytes.begin() + 192, bytes.end()),
              ElementsAreArray({7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace usdt::backends
