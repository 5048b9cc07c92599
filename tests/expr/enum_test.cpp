// SPDX-License-Identifier: BSD-2-Clause
// Values of enums by their names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "random_expressions.hpp"
#include "wrong_text.hpp"

namespace usdt::test {
namespace {

using testing::HasSubstr;

Arg enum_argument(std::string name, std::string type, Type of, std::vector<Enumerator> values) {
  Arg arg{.type = of, .location = Register{}, .source = {}};
  arg.type.kind = values.empty() ? TypeKind::integer : TypeKind::enumeration;
  arg.declaration =
      std::make_shared<const Declaration>(Declaration{std::move(name), std::move(type), std::move(values)});
  return arg;
}

/// state: of 2 signed bytes; mode: bits; large: of 8 bytes; BUSY: a number, which is called as a value of state is.
std::vector<Arg> arguments() {
  return {
      enum_argument("state", "const net::State", {.size = 2, .is_signed = true},
                    {{"IDLE", 0}, {"BUSY", 3}, {"GONE", 0xffff}, {"LATE", UINT64_MAX - 1}}),
      enum_argument("mode", "enum mode", {.size = 4}, {{"READ", 1}, {"WRITE", 2}, {"EXEC", 4}}),
      enum_argument("large", "large_t", {.size = 8}, {{"TOP", UINT64_MAX}, {"ONE", 1}}),
      enum_argument("number", "int", {.size = 4, .is_signed = true}, {}),
  };
}

Result<TypedExpression> asked(const std::string& text, const std::vector<Arg>& args) {
  auto parsed = parse_expression(text);
  if (!parsed) return fail(parsed.error());
  std::vector<std::size_t> places;
  for (const ValuePath& path : parsed->values) {
    const auto known = std::ranges::find(args, path.text, [](const Arg& arg) { return std::string(arg.name()); });
    places.push_back(known == args.end() ? TypedExpression::kNoArgument
                                         : static_cast<std::size_t>(known - args.begin()));
  }
  return TypedExpression::check(*parsed, args, places);
}

bool holds(const std::string& text, std::vector<std::uint64_t> numbers) {
  const auto expression = asked(text, arguments());
  EXPECT_TRUE(expression) << text << ": " << expression.error().message;
  NumbersOfHit hit;
  hit.numbers = std::move(numbers);
  return expression && evaluate(*expression, hit).value_or(0) != 0;
}

constexpr std::uint64_t kMinusOne = UINT64_MAX;

TEST(NamesOfEnums, are_the_values_of_the_enum_that_they_are_compared_with) {
  EXPECT_TRUE(holds("state == BUSY", {3, 0, 0, 0}));
  EXPECT_FALSE(holds("state == BUSY", {4, 0, 0, 0}));
  EXPECT_TRUE(holds("BUSY == state && state != IDLE", {3, 0, 0, 0}));
  EXPECT_TRUE(holds("state == GONE", {kMinusOne, 0, 0, 0})) << "two bytes of it count";
  EXPECT_TRUE(holds("state == LATE", {kMinusOne - 1, 0, 0, 0}));
  EXPECT_TRUE(holds("state < IDLE", {kMinusOne, 0, 0, 0}));
  EXPECT_TRUE(holds("state in {IDLE, GONE}", {kMinusOne, 0, 0, 0}));
  EXPECT_FALSE(holds("state in {IDLE, GONE}", {3, 0, 0, 0}));
  EXPECT_TRUE(holds("large == TOP && large > ONE", {0, 0, UINT64_MAX, 0}));
}

TEST(NamesOfEnums, combine_bits) {
  EXPECT_TRUE(holds("mode & WRITE", {0, 3, 0, 0}));
  EXPECT_FALSE(holds("mode & WRITE", {0, 5, 0, 0}));
  EXPECT_TRUE(holds("mode == (READ | EXEC)", {0, 5, 0, 0}));
  EXPECT_TRUE(holds("(mode & (READ | WRITE)) == READ", {0, 5, 0, 0}));
  EXPECT_TRUE(holds("(mode & ~WRITE) == 5", {0, 7, 0, 0}));
}

TEST(NamesOfEnums, may_have_their_type_or_what_it_is_in_before_them) {
  for (const char* name : {"State::BUSY", "net::State::BUSY", "net::BUSY"})
    EXPECT_TRUE(holds(std::string("state == ") + name, {3, 0, 0, 0})) << name;
  EXPECT_TRUE(holds("mode == mode::EXEC", {0, 4, 0, 0}));
}

class MistakenNameOfEnum : public testing::TestWithParam<WrongText> {};

TEST_P(MistakenNameOfEnum, is_refused_with_those_that_there_are) {
  const auto expression = asked(GetParam().text, arguments());
  ASSERT_FALSE(expression) << GetParam().text;
  EXPECT_EQ(expression.error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(expression.error().column, GetParam().column);
  EXPECT_THAT(expression.error().message, HasSubstr(GetParam().reason));
}
INSTANTIATE_TEST_SUITE_P(
    Each, MistakenNameOfEnum,
    testing::Values(
        WrongText{"state == BUZY", 9, "state is const net::State, which has no value 'BUZY'; did you mean BUSY?"},
        WrongText{"mode == NOTHING_LIKE_IT", 8, "which has no value 'NOTHING_LIKE_IT'; it has READ, WRITE, EXEC"},
        WrongText{"state == Other::BUSY", 9, "no value 'Other::BUSY'"}, WrongText{"state == ate::BUSY", 9, "no value"},
        WrongText{"state == READ", 9, "no value 'READ'"},
        WrongText{"number == BUSY", 10, "BUSY: there is no such argument"},
        WrongText{"BUSY == IDLE", 0, "BUSY: there is no such argument"},
        WrongText{"state == 3 && BUSY", 14, "BUSY: there is no such argument"},
        WrongText{"state == (number == BUSY)", 20, "BUSY: there is no such argument"},
        WrongText{"state + BUSY > 3", 8, "BUSY: there is no such argument"},
        WrongText{"str(BUSY) == \"x\"", 4, "BUSY: there is no such argument"},
        WrongText{"state == \"BUSY\"", 0, "state is no text"}));

TEST(NamesOfEnums, are_arguments_where_there_is_one_of_that_name) {
  std::vector<Arg> args = arguments();
  args.push_back(enum_argument("BUSY", "int", {.size = 4, .is_signed = true}, {}));
  const auto expression = asked("state == BUSY", args);
  ASSERT_TRUE(expression);
  EXPECT_EQ(expression->args().size(), 2U);
}

TEST(NamesOfEnums, are_bounded_by_the_numbers_of_their_type) {
  std::vector<Arg> args = {enum_argument("odd", "enum odd", {.size = 16}, {{"A", 1}})};
  EXPECT_FALSE(asked("odd == A", args)) << "of a size that no number has";
}

}  // namespace
}  // namespace usdt::test
