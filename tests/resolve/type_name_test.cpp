// SPDX-License-Identifier: BSD-2-Clause
#include <gtest/gtest.h>

#include "fake_task.hpp"

namespace usdt {
namespace {

std::string type_of(std::string_view text, Machine machine = Machine::x86_64) {
  return type_name(test::resolve_text(text, machine).arg.type);
}

TEST(TypeNames, say_width_and_sign) {
  EXPECT_EQ(type_of("1@%al"), "u8");
  EXPECT_EQ(type_of("-2@%ax"), "i16");
  EXPECT_EQ(type_of("-4@$7"), "i32");
  EXPECT_EQ(type_of("8@(%rsp)"), "u64");
}

TEST(TypeNames, say_float) {
  EXPECT_EQ(type_of("4f@%eax"), "f32");
  EXPECT_EQ(type_of("8f@(%rsp)"), "f64");
}

TEST(TypeNames, use_the_machines_word_where_the_text_has_no_size) {
  EXPECT_EQ(type_of("%rdi"), "u64");
  EXPECT_EQ(type_of("%edi", Machine::i386), "u32");
}

TEST(TypeNames, mark_sizes_that_no_type_has) {
  EXPECT_EQ(type_of("16@(%rsp)"), "?128");
  EXPECT_EQ(type_of("3@(%rsp)"), "?24");
  EXPECT_EQ(type_of("2f@(%rsp)"), "?16");
}

}  // namespace
}  // namespace usdt
