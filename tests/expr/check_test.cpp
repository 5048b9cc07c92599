// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "random_expressions.hpp"

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

struct Wrong {
  const char* text;
  unsigned column;
  const char* reason;
};
class MistypedExpression : public testing::TestWithParam<Wrong> {};

TEST_P(MistypedExpression, is_refused_where_the_types_do_not_fit) {
  const auto expression = typed(GetParam().text, arguments_of_every_kind());
  ASSERT_FALSE(expression) << GetParam().text;
  EXPECT_EQ(expression.error().column, GetParam().column);
  EXPECT_THAT(expression.error().message, HasSubstr(GetParam().reason));
}
INSTANTIATE_TEST_SUITE_P(Each, MistypedExpression,
                         testing::Values(Wrong{"c + 1 > 2", 0, "c is a real, which can only be compared"},
                                         Wrong{"a == 1 && c", 10, "neither true nor false"},
                                         Wrong{"c < a", 0, "reals are compared with literals"},
                                         Wrong{"f == 1", 0, "f is no number: name a member of it"},
                                         Wrong{"a == \"x\"", 0, "a is no text"}, Wrong{"comm == 3", 8, "with a number"},
                                         Wrong{"comm < \"x\"", 0, "no order"},
                                         Wrong{"e =~ comm", 5, "matches a literal"},
                                         Wrong{"comm == a", 8, "a is no text"}, Wrong{"e < comm", 0, "no order"},
                                         Wrong{"e =~ \"?????????????????????????????????????????????????????????"
                                               "??????\"",
                                               5, "more than 62 characters"},
                                         Wrong{"str(a) == \"x\"", 4, "a is no pointer to a text"},
                                         Wrong{"a == 1 / 0", 5, "a division by 0"},
                                         Wrong{"e == \"a\\x00b\"", 5, "a NUL"}));

}  // namespace
}  // namespace usdt::test
