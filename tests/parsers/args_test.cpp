// SPDX-License-Identifier: BSD-2-Clause
// What the golden pairs cannot show: the text itself, odd bytes, size and depth, and that arguments are independent.
#include "parsers/args.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "describe.hpp"

namespace usdt::parsers {
namespace {

constexpr std::array kMachines = {Machine::x86_64, Machine::i386, Machine::aarch64};

std::string repeat(std::string_view part, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

TEST(ArgTexts, that_are_empty_or_begin_with_a_colon_have_no_arguments) {
  for (const Machine machine : kMachines) {
    EXPECT_TRUE(parse_args("", machine).empty());
    EXPECT_TRUE(parse_args(" \t ", machine).empty());
    EXPECT_TRUE(parse_args(":", machine).empty());
    EXPECT_TRUE(parse_args(": 8@%rax", machine).empty());
  }
}

TEST(ArgTexts, keep_every_argument_as_it_stands_with_its_column) {
  const std::vector<ParsedArg> args = parse_x86_att("  -4@%eax\t8@8( %rdi )  8@junk! ");
  ASSERT_EQ(args.size(), 3u);
  EXPECT_EQ(args[0].text, "-4@%eax");
  EXPECT_EQ(args[0].column, 2u);
  EXPECT_EQ(args[1].text, "8@8( %rdi )");
  EXPECT_EQ(args[1].column, 10u);
  EXPECT_EQ(args[2].text, "8@junk!");
  EXPECT_EQ(args[2].column, 23u);
  EXPECT_EQ(args[2].unreadable, (Unreadable{"unexpected '!' in operand", 29}));
}

TEST(ArgTexts, keep_a_post_index_amount_in_the_text_of_its_argument) {
  const std::vector<ParsedArg> args = parse_aarch64("8@[sp], 16 8@[sp] , #-8 8@x1");
  ASSERT_EQ(args.size(), 3u);
  EXPECT_EQ(args[0].text, "8@[sp], 16");
  EXPECT_EQ(args[1].text, "8@[sp] , #-8");
  EXPECT_EQ(args[2].text, "8@x1");
}

TEST(ArgTexts, keep_size_sign_and_float_of_an_operand_that_does_not_parse) {
  const std::vector<ParsedArg> args = parse_x86_att("-2@? 8f@? -4f@?");
  ASSERT_EQ(args.size(), 3u);
  EXPECT_EQ(args[0].size, 2u);
  EXPECT_TRUE(args[0].is_signed);
  EXPECT_EQ(args[1].size, 8u);
  EXPECT_TRUE(args[1].is_float);
  EXPECT_EQ(args[2].size, 4u);
  EXPECT_TRUE(args[2].is_signed && args[2].is_float);
  for (const ParsedArg& arg : args) EXPECT_TRUE(std::holds_alternative<std::monostate>(arg.operand));
}

TEST(ArgTexts, name_bytes_that_cannot_be_printed_by_their_number) {
  const std::vector<ParsedArg> args = parse_x86_att("8@%rax\x01 8@\x7f(%rax) 8@8\xff");
  ASSERT_EQ(args.size(), 3u);
  EXPECT_EQ(args[0].unreadable->reason, "unexpected byte 0x01 in operand");
  EXPECT_EQ(args[1].unreadable->reason, "unexpected byte 0x7f in operand");
  EXPECT_EQ(args[2].unreadable->reason, "unexpected byte 0xff in operand");
}

TEST(ArgTexts, end_an_open_bracket_or_quote_at_the_next_size_prefix) {
  for (const std::string_view odd :
       {"8@(%rax", "8@8(%rax,%rbx", "8@\"open", "8@\"open\\", "8@[x0", "8@((((", "8@[x0, #:lo12:"}) {
    for (const Machine machine : kMachines) {
      const std::string text = std::string(odd) + " -4@5 4f@6";
      const std::vector<ParsedArg> args = parse_args(text, machine);
      ASSERT_EQ(args.size(), 3u) << odd;
      EXPECT_EQ(args[0].text, odd);
      EXPECT_TRUE(args[0].unreadable);
      EXPECT_EQ(args[1].text, "-4@5");
      EXPECT_FALSE(args[1].unreadable);
      EXPECT_EQ(args[2].text, "4f@6");
    }
  }
}

TEST(ArgTexts, decode_an_argument_the_same_whatever_stands_beside_it) {
  const std::vector<std::string_view> parts = {
      "-8@8(%rdi)", "1@16(%rdi,%rsi,2)", "8@(%rax", "4@$5",     "8@[x0, x1]", "8@[x0",
      "8@\"a",      "8@[sp], 16",        "8@a-b",   "8@%st(1)", "0@x",        "8@"};
  for (const Machine machine : kMachines) {
    for (const std::string_view left : parts) {
      for (const std::string_view right : parts) {
        const std::vector<ParsedArg> alone = parse_args(right, machine);
        const std::string both = std::string(left) + " " + std::string(right);
        const std::vector<ParsedArg> beside = parse_args(both, machine);
        ASSERT_EQ(beside.back().text, alone.back().text) << left;
        EXPECT_EQ(beside.back().operand, alone.back().operand) << left;
        EXPECT_EQ(beside.front(), parse_args(left, machine).front()) << right;
      }
    }
  }
}

/// Texts of about `n` repetitions that would be slow if anything were scanned twice for each character.
std::vector<std::string> hostile_texts(std::size_t n) {
  return {repeat("(", n),
          "8@" + repeat("(", n),
          "8@" + repeat("-", n),
          "8@" + repeat("\"\\", n),
          repeat("8@ ", n),
          "8@$" + repeat("1+", n),
          repeat("8@$1+(", n),
          "8@[" + repeat(" x", n),
          repeat("1 ", n),
          "8@" + repeat("9", n),
          repeat("9", n) + "@%rax",
          "8@" + repeat("9*", n) + "9",
          repeat(", ", n),
          repeat("8@[x0], ", n),
          "8@" + repeat("(1)+", n) + "1",
          repeat("\"", n),
          repeat("8@\" ", n),
          "8@$" + repeat("0", n),
          "8@" + repeat("a", n) + "(%rip"};
}

/// The best of three, so that a busy machine does not look like a slow parser.
std::chrono::nanoseconds time_to_parse(const std::string& text, Machine machine) {
  auto best = std::chrono::nanoseconds::max();
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<ParsedArg> args = parse_args(text, machine);
    best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - start);
    EXPECT_EQ(broken_invariant(text, args), "") << text.substr(0, 20);
  }
  return best;
}

TEST(HostileTexts, take_time_that_grows_with_their_length_only) {
  const std::vector<std::string> shorter = hostile_texts(1000);
  const std::vector<std::string> longer = hostile_texts(16000);
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    for (const Machine machine : kMachines) {
      const auto small = time_to_parse(shorter[i], machine) + std::chrono::microseconds(20);
      // 16 times is linear, 256 times would be quadratic.
      EXPECT_LT(time_to_parse(longer[i], machine), 80 * small) << shorter[i].substr(0, 20);
    }
  }
}

TEST(HostileTexts, that_nest_too_deeply_are_refused_not_followed) {
  const std::string deep = "8@$" + repeat("(", 1000) + "1" + repeat(")", 1000);
  EXPECT_EQ(parse_x86_att(deep).at(0).unreadable->reason, "expression is nested too deeply");
  const std::string fine = "8@$" + repeat("(", 30) + "1" + repeat(")", 30);
  EXPECT_EQ(describe(parse_x86_att(fine).at(0)), "u8 const 1");
}

}  // namespace
}  // namespace usdt::parsers
