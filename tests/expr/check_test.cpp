// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "expr/compile.hpp"
#include "random_expressions.hpp"
#include "wrong_text.hpp"

namespace usdt::test {
namespace {

using testing::HasSubstr;

/// a: i64, b: u64, c: double, d: float, e: char *, f: a struct.
std::vector<Arg> arguments_of_every_kind() {
  std::vector<Arg> args = six_arguments(false);
  args[2].type = {.size = 8, .kind = TypeKind::floating};
  args[3].type = {.size = 4, .kind = TypeKind::floating};
  args[4].type = {.size = 8, .kind = TypeKind::text};
  args[5].type = {.size = 24, .kind = TypeKind::structure};
  return args;
}

std::uint64_t answer(const std::string& text, std::vector<std::uint64_t> numbers) {
  const auto expression = typed(text, arguments_of_every_kind());
  EXPECT_TRUE(expression) << text << ": " << expression.error().message;
  NumbersOfHit hit;
  hit.numbers = std::move(numbers);
  hit.numbers.resize(6);
  const auto found = expression ? evaluate(*expression, hit) : std::nullopt;
  EXPECT_TRUE(found) << text;
  return found.value_or(999);
}

TEST(CheckExpression, compares_signed_and_unsigned_numbers_by_their_values) {
  EXPECT_EQ(answer("a < b", {UINT64_MAX, 1}), 1U) << "-1 < 1";
  EXPECT_EQ(answer("b > a", {UINT64_MAX, UINT64_MAX}), 1U);
  EXPECT_EQ(answer("a == b", {UINT64_MAX, UINT64_MAX}), 0U);
  EXPECT_EQ(answer("b > -1", {0, 0}), 1U);
  EXPECT_EQ(answer("a in {-1, 5}", {UINT64_MAX}), 1U);
}

TEST(CheckExpression, makes_of_either_side_of_a_conditional_what_both_have_in_common) {
  EXPECT_EQ(answer("(1 ? a : b) < 0", {UINT64_MAX}), answer("(b ? b : a) < 0", {UINT64_MAX, 0})) << "b has no sign";
  EXPECT_EQ(answer("(1 ? a : b) > 5", {UINT64_MAX}), 1U);
  EXPECT_EQ(answer("(0 ? b : -1) > 5", {}), 1U);
  EXPECT_EQ(answer("(1 ? a : -2) < 0", {UINT64_MAX}), 1U);
}

TEST(CheckExpression, compares_reals_as_reals_whatever_their_size) {
  const auto bits = [](double d) { return std::bit_cast<std::uint64_t>(d); };
  const auto bits32 = [](float f) { return std::uint64_t{std::bit_cast<std::uint32_t>(f)}; };
  EXPECT_EQ(answer("c > -0.5", {0, 0, bits(-0.25)}), 1U);
  EXPECT_EQ(answer("c == 0", {0, 0, bits(-0.0)}), 1U);
  EXPECT_EQ(answer("c < 3", {0, 0, bits(NAN)}), 0U);
  EXPECT_EQ(answer("c != 3", {0, 0, bits(NAN)}), 1U);
  // 0.1 is no float: the nearest one is above it.
  EXPECT_EQ(answer("d > 0.1", {0, 0, 0, bits32(0.1F)}), 1U);
  EXPECT_EQ(answer("d == 0.1", {0, 0, 0, bits32(0.1F)}), 0U);
  EXPECT_EQ(answer("d != 0.1", {0, 0, 0, bits32(0.1F)}), 1U);
  EXPECT_EQ(answer("d == 0.5", {0, 0, 0, bits32(0.5F)}), 1U);
  EXPECT_EQ(answer("0.1 < d", {0, 0, 0, bits32(0.1F)}), 1U);
}

constexpr std::array<const char*, 6> kComparisons{"<", "<=", ">", ">=", "==", "!="};

bool compared(const std::string& op, int order) {
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  if (op == ">=") return order >= 0;
  return (order == 0) == (op == "==");
}

template <class T>
int order_of(T a, T b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

/// An integer literal as people write it, and what it is.
struct Written {
  std::string text;
  __extension__ __int128 number;
};

/// Around the ends of the numbers of 64 bits, in all of C's notations.
std::vector<Written> written_integers() {
  std::vector<Written> all;
  for (const std::uint64_t magnitude :
       {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 53) + 1, (std::uint64_t{1} << 63) - 1,
        std::uint64_t{1} << 63, (std::uint64_t{1} << 63) + 1, ~std::uint64_t{0}}) {
    for (const char* notation : {"{}", "{:#x}", "0{:o}", "0b{:b}"}) {
      const std::string text = fmt::format(fmt::runtime(notation), magnitude);
      all.push_back({text, magnitude});
      if (magnitude <= std::uint64_t{1} << 63) {
        all.push_back({"-" + text, -static_cast<decltype(Written::number)>(magnitude)});
        all.push_back({"- " + text, -static_cast<decltype(Written::number)>(magnitude)});
      }
    }
  }
  return all;
}

TEST(CheckExpression, a_literal_is_the_number_that_is_written_the_smallest_one_too) {
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  for (const Written& literal : written_integers()) {
    for (const char* op : kComparisons) {
      for (const std::int64_t a : {lowest, lowest + 1, std::int64_t{-1}, std::int64_t{0}, std::int64_t{5},
                                   std::numeric_limits<std::int64_t>::max()}) {
        const bool wanted = compared(op, order_of<decltype(literal.number)>(a, literal.number));
        EXPECT_EQ(answer(fmt::format("a {} {}", op, literal.text), {static_cast<std::uint64_t>(a)}), wanted ? 1U : 0U)
            << a << op << literal.text;
      }
      for (const std::uint64_t b : {std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
        const bool wanted = compared(op, order_of<decltype(literal.number)>(b, literal.number));
        EXPECT_EQ(answer(fmt::format("b {} {}", op, literal.text), {0, b}), wanted ? 1U : 0U)
            << b << op << literal.text;
      }
    }
  }
  EXPECT_EQ(answer("a in {5, -9223372036854775808}", {static_cast<std::uint64_t>(lowest)}), 1U);
  for (const char* below : {"-9223372036854775809", "a == -0x8000000000000001", "-18446744073709551615"}) {
    const auto parsed = parse_expression(below);
    ASSERT_FALSE(parsed) << below;
    EXPECT_EQ(parsed.error().kind, ErrorKind::limit);
  }
  EXPECT_EQ(answer("b == -9223372036854775809u", {0, 0x7fffffffffffffff}), 1U)
      << "modulo 2^64, where that is asked for";
}

TEST(CheckExpression, reals_and_integers_are_compared_by_their_values_and_never_rounded) {
  const double two53 = 9007199254740992.0, two63 = 9223372036854775808.0;
  const double doubles[] = {0,         -0.0,   0.5,   -0.5,   5,         two53 - 1, two53,
                            two53 + 2, -two53, two63, -two63, 2 * two63, 1e300,     -1e300};
  for (const Written& literal : written_integers()) {
    for (const char* op : kComparisons) {
      for (const double real : doubles) {
        const auto wanted =
            compared(op, order_of(static_cast<long double>(real), static_cast<long double>(literal.number)));
        EXPECT_EQ(answer(fmt::format("c {} {}", op, literal.text), {0, 0, std::bit_cast<std::uint64_t>(real)}),
                  wanted ? 1U : 0U)
            << fmt::format("{} {} {}", real, op, literal.text);
        const auto narrow = static_cast<float>(real);
        const auto wanted32 =
            compared(op, order_of(static_cast<long double>(narrow), static_cast<long double>(literal.number)));
        EXPECT_EQ(answer(fmt::format("d {} {}", op, literal.text), {0, 0, 0, std::bit_cast<std::uint32_t>(narrow)}),
                  wanted32 ? 1U : 0U)
            << fmt::format("{} {} {}", narrow, op, literal.text);
      }
    }
  }
  const std::int64_t integers[] = {std::numeric_limits<std::int64_t>::min(), -6, -5, 0, 1, 5, 6, 9007199254740993,
                                   std::numeric_limits<std::int64_t>::max()};
  for (const double real : {0.5, -0.5, 5.0, -5.5, 9007199254740992.0, -two63, two63, 2 * two63, 1e300, -1e300}) {
    const std::string literal = fmt::format("{:.17e}", real);
    for (const char* op : kComparisons) {
      for (const std::int64_t a : integers) {
        const auto wanted = compared(op, order_of(static_cast<long double>(a), static_cast<long double>(real)));
        EXPECT_EQ(answer(fmt::format("a {} {}", op, literal), {static_cast<std::uint64_t>(a)}), wanted ? 1U : 0U)
            << fmt::format("{} {} {}", a, op, literal);
        const auto b = static_cast<std::uint64_t>(a);
        const auto wanted_b = compared(op, order_of(static_cast<long double>(b), static_cast<long double>(real)));
        EXPECT_EQ(answer(fmt::format("b {} {}", op, literal), {0, b}), wanted_b ? 1U : 0U)
            << fmt::format("{} {} {}", b, op, literal);
      }
    }
  }
  EXPECT_EQ(answer("9007199254740993 == 9007199254740992.0", {}), 0U) << "of two literals, too";
}

TEST(CheckExpression, two_literal_texts_are_the_same_or_not) {
  EXPECT_EQ(answer("\"a\" == \"a\"", {}), 1U);
  EXPECT_EQ(answer("\"a\" != \"a\"", {}), 0U);
  EXPECT_EQ(answer("\"a\" == \"b\"", {}), 0U);
  EXPECT_EQ(answer("\"abc\" =~ \"a*\"", {}), 1U);
  EXPECT_EQ(answer("\"abc\" =~ \"b*\"", {}), 0U);
  EXPECT_EQ(answer("\"b\" in {\"a\", \"b\"}", {}), 1U);
}

TEST(CheckExpression, programs_have_room_for_texts_beside_what_waits_for_them) {
  auto args = arguments_of_every_kind();
  args[5].type = {.size = 8, .kind = TypeKind::text};
  for (const char* fits : {"(a + 1) >> (e == f)", "(e == f) + (a * b) == 1", "(a + b) * ((a - b) + (e == f)) > 0",
                           "(e == f) == (f == e)", "((e == f) + (a - b)) * (a + b) == 2", "(a + b) == (e =~ \"*x*\")",
                           "(a+b)*((a-b)*((a|b)*((a&b)*((a^b)*(a+2*b))))) == 1"}) {
    const auto question = typed(fits, args);
    ASSERT_TRUE(question) << fits << ": " << question.error().message;
    const auto code = expr::compile(*question, {});
    EXPECT_TRUE(code) << fits << ": " << code.error().message;
  }
}

TEST(CheckExpression, asks_no_more_than_it_needs_to_answer) {
  const auto expression = typed("a == 1 || b / 0 == 1", arguments_of_every_kind());
  const auto lazy = typed("a == 1 || b / a == 1", arguments_of_every_kind());
  ASSERT_TRUE(lazy);
  NumbersOfHit hit;
  hit.numbers = {1, 5, 0, 0, 0, 0};
  hit.unread = 2;  // b
  EXPECT_EQ(evaluate(*lazy, hit), 1U);
  hit.numbers[0] = 0;
  EXPECT_EQ(evaluate(*lazy, hit), std::nullopt) << "b was not read";
  hit.unread = 0;
  EXPECT_EQ(evaluate(*lazy, hit), std::nullopt) << "by 0";
}

class MistypedExpression : public testing::TestWithParam<WrongText> {};

TEST_P(MistypedExpression, is_refused_where_the_types_do_not_fit) {
  const auto expression = typed(GetParam().text, arguments_of_every_kind());
  ASSERT_FALSE(expression) << GetParam().text;
  EXPECT_EQ(expression.error().column, GetParam().column);
  EXPECT_THAT(expression.error().message, HasSubstr(GetParam().reason));
}
INSTANTIATE_TEST_SUITE_P(
    Each, MistypedExpression,
    testing::Values(WrongText{"c + 1 > 2", 0, "c is a real, which can only be compared"},
                    WrongText{"a == 1 && c", 10, "neither true nor false"},
                    WrongText{"c < a", 0, "reals are compared with literals"},
                    WrongText{"f == 1", 0, "f is no number: name a member of it"},
                    WrongText{"a == \"x\"", 0, "a is no text"}, WrongText{"comm == 3", 8, "with a number"},
                    WrongText{"comm < \"x\"", 0, "no order"}, WrongText{"e =~ comm", 5, "matches a literal"},
                    WrongText{"comm == a", 8, "a is no text"}, WrongText{"e < comm", 0, "no order"},
                    WrongText{"e =~ \"?????????????????????????????????????????????????????????"
                              "??????\"",
                              5, "more than 62 characters"},
                    WrongText{"trace_id == \"x\"", 12, "32 hexadecimal digits"},
                    WrongText{"span_id != \"0123456789abcdeg\"", 11, "16 hexadecimal digits"},
                    WrongText{"trace_id =~ \"a*\"", 12, "equal to a number or not"},
                    WrongText{"trace_id < \"\"", 11, "equal to a number or not"},
                    WrongText{"trace_id == str(e)", 0, "compared with a literal"},
                    WrongText{"span_id == 3", 11, "with a number"},
                    WrongText{"str(a) == \"x\"", 4, "a is no pointer to a text"},
                    WrongText{"a == 1 / 0", 5, "a division by 0"}, WrongText{"e == \"a\\x00b\"", 5, "a NUL"}));

}  // namespace
}  // namespace usdt::test
