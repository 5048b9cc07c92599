// SPDX-License-Identifier: BSD-2-Clause
#include "program/libbpf_specs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/arg_specs.hpp"

namespace usdt::backends {
namespace {

using test::constant;
using test::indexed;
using test::mem;
using test::reg;
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

bool has_no_form(const usdt_arg_spec& arg, const LibbpfLayout& layout = kPlain, const LibbpfSites& sites = {}) {
  return arg_bytes(arg, layout, sites)[8] == 0x7f;
}

TEST(LibbpfSpec, has_the_bytes_of_a_constant) {
  EXPECT_THAT(arg_bytes(constant(-9, 4, USDT_ARG_SIGNED)),
              ElementsAreArray({0xf7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,  // value
                                0, 0, 0, 0,                                      // type
                                0, 0, 1, 32}));                                  // register, sign, spare
}

TEST(LibbpfSpec, has_the_bytes_of_a_register) {
  EXPECT_THAT(arg_bytes(reg(14, 8)), ElementsAreArray({0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 112, 0, 0, 0}));
}

TEST(LibbpfSpec, reads_the_second_byte_of_a_register_one_byte_further) {
  EXPECT_THAT(arg_bytes(reg(10, 1, 0, 8)), ElementsAreArray({0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 81, 0, 0, 56}));
}

TEST(LibbpfSpec, has_the_bytes_of_memory_near_a_register) {
  EXPECT_THAT(arg_bytes(mem(-24, 19, 2, USDT_ARG_SIGNED)),
              ElementsAreArray({0xe8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 152, 0, 1, 48}));
}

TEST(LibbpfSpec, takes_the_instruction_pointer_as_a_register) {
  const usdt_arg_spec global = mem(0x1234, USDT_REG_NONE, 4, USDT_ARG_IP);
  EXPECT_THAT(arg_bytes(global), ElementsAreArray({0x34, 0x12, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 128, 0, 0, 32}));
  EXPECT_THAT(arg_bytes(global, kPlain, {.ip_word = 32}),
              ElementsAreArray({0x34, 0x12, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 32}));
}

TEST(LibbpfSpec, has_the_bytes_of_the_newer_layout) {
  EXPECT_THAT(arg_bytes(indexed(-96, 14, 13, 3), kIndexed),
              ElementsAreArray({0xa0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,  // value
                                3,    0,    104,  0x30, 0,    0,                 // type; index and scale; reserved
                                112,  0,    0,    0,    0,    0,                 // register, sign, spare
                                0,    0,    0,    0}));                          // padding
  EXPECT_THAT(arg_bytes(reg(10, 1, USDT_ARG_SIGNED), kIndexed),
              ElementsAreArray({0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 80, 0, 1, 56, 0, 0, 0, 0, 0, 0}));
}

TEST(LibbpfSpec, adds_an_index_to_the_instruction_pointer_where_there_is_an_index_at_all) {
  const usdt_arg_spec arg = indexed(64, USDT_REG_NONE, 13, 2, 8, USDT_ARG_IP);
  EXPECT_TRUE(has_no_form(arg, kPlain));
  const Bytes bytes = arg_bytes(arg, kIndexed);
  EXPECT_EQ(bytes[8], 3);
  EXPECT_EQ(bytes[10], 104);
  EXPECT_EQ(bytes[11], 0x20);
  EXPECT_EQ(bytes[14], 128);
}

TEST(LibbpfSpec, has_no_form_for_what_would_read_something_else) {
  EXPECT_TRUE(has_no_form(indexed(0, 14, 13, 3))) << "no index register before 1.7";
  EXPECT_TRUE(has_no_form(indexed(0x4000, USDT_REG_NONE, 13, 3), kIndexed)) << "an index without a base";
  EXPECT_TRUE(has_no_form(indexed(0, 14, 13, 3, 8, USDT_ARG_INDEX_S32), kIndexed)) << "half an index register";
  EXPECT_TRUE(has_no_form(indexed(0, 14, 13, 3, 8, USDT_ARG_INDEX_U32), kIndexed)) << "half an index register";
  EXPECT_TRUE(has_no_form(mem(0x4000, USDT_REG_NONE))) << "memory without a register";
  EXPECT_TRUE(has_no_form(reg(10, 8, USDT_ARG_PAIR))) << "two registers";
  EXPECT_TRUE(has_no_form(reg(10, 8, 0, 8))) << "seven bytes of a register and one of the next";
  EXPECT_TRUE(has_no_form(mem(8, 14, 8, 1u << 7))) << "a flag of the future";
  usdt_arg_spec arg = mem(0x1234, USDT_REG_NONE, 8, USDT_ARG_IP);
  arg.kind = USDT_ARG_ADDR;
  EXPECT_TRUE(has_no_form(arg)) << "an address that is not read from";
  arg.kind = USDT_ARG_UNREADABLE;
  EXPECT_TRUE(has_no_form(arg));
}

TEST(LibbpfSpec, keeps_the_size_of_what_it_has_no_form_for) {
  usdt_arg_spec arg = mem(0, USDT_REG_NONE, 4);
  arg.kind = USDT_ARG_UNREADABLE;
  EXPECT_THAT(arg_bytes(arg), ElementsAreArray({0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0, 0, 0, 0, 32}));
}

TEST(LibbpfSpec, takes_the_instruction_pointer_itself_for_a_register) {
  usdt_arg_spec arg = mem(0, USDT_REG_NONE, 8, USDT_ARG_IP);
  arg.kind = USDT_ARG_ADDR;
  EXPECT_THAT(arg_bytes(arg), ElementsAreArray({0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 128, 0, 0, 0}));
}

TEST(LibbpfSpec, reads_addresses_that_wrap_at_4_gib_only_where_nothing_is_above) {
  const usdt_arg_spec arg = mem(0xfffffff8, 4, 4, USDT_ARG_ADDR32);
  EXPECT_TRUE(has_no_form(arg));
  EXPECT_THAT(arg_bytes(arg, kPlain, {.narrow_addresses = true}),
              ElementsAreArray({0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 32, 0, 0, 32}));
}

TEST(LibbpfSpec, leaves_out_arguments_beyond_the_twelfth) {
  for (const LibbpfLayout& layout : {kPlain, kIndexed}) {
    EncodedSpec spec{0x1122334455667788, std::vector<usdt_arg_spec>(20, reg(10, 4))};
    const Bytes bytes = spec_bytes(layout, spec);
    const std::size_t at = std::size_t{12} * layout.arg_bytes;
    EXPECT_EQ(bytes[at - layout.arg_bytes + 8], 1) << "type of argument 12";
    EXPECT_THAT(Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end()),
                ElementsAreArray({0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 12, 0, 0, 0, 0, 0, 0, 0}));
  }
}

TEST(LibbpfSpec, of_no_arguments_is_its_cookie) {
  const Bytes bytes = spec_bytes(kPlain, {7, {}});
  EXPECT_THAT(Bytes(bytes.begin(), bytes.begin() + 192), Each(0));
  EXPECT_THAT(Bytes(bytes.begin() + 192, bytes.end()),
              ElementsAreArray({7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace usdt::backends
