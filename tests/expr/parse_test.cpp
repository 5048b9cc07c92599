// SPDX-License-Identifier: BSD-2-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "usdt/expression.hpp"
#include "wrong_text.hpp"

namespace usdt::test {
namespace {

using testing::HasSubstr;

std::vector<std::string> values_of(std::string_view text) {
  const auto parsed = parse_expression(text);
  EXPECT_TRUE(parsed) << parsed.error().message;
  std::vector<std::string> names;
  if (parsed) {
    for (const ValuePath& path : parsed->values) names.push_back(path.text);
  }
  return names;
}

TEST(ParseExpression, finds_each_value_once_by_the_way_to_it) {
  EXPECT_EQ(values_of("arg0 == 1 || arg0 == 2"), (std::vector<std::string>{"arg0"}));
  EXPECT_EQ(values_of("req->peer.port == 80 && *p > req->len"),
            (std::vector<std::string>{"req->peer.port", "*p", "req->len"}));
  EXPECT_EQ(values_of("((struct foo *)arg1)->x + (b[2] - (c))"),
            (std::vector<std::string>{"((struct foo *)arg1)->x", "b[2]", "(c)"}));
  EXPECT_EQ(values_of("a*b"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(values_of("in == 3 && index in {1}"), (std::vector<std::string>{"in", "index"}));
}

TEST(ParseExpression, knows_the_words_for_what_every_hit_has_unless_an_argument_of_the_name_is_meant) {
  EXPECT_TRUE(values_of("pid == 1 && comm == \"cat\" && duration > 10ms").empty());
  EXPECT_EQ(values_of("args.pid == pid"), (std::vector<std::string>{"pid"}));
}

TEST(ParseExpression, reads_literals_of_every_notation) {
  const auto number = [](std::string_view text) {
    const auto parsed = parse_expression(text);
    EXPECT_TRUE(parsed) << text;
    return parsed ? parsed->root.bits : 0;
  };
  EXPECT_EQ(number("0x1F"), 31U);
  EXPECT_EQ(number("017"), 15U);
  EXPECT_EQ(number("0b101"), 5U);
  EXPECT_EQ(number("10ms"), 10'000'000U);
  EXPECT_EQ(number("4KiB"), 4096U);
  EXPECT_EQ(number("2h"), 7'200'000'000'000U);
  EXPECT_EQ(number("'A'"), 65U);
  EXPECT_EQ(number("'\\n'"), 10U);
  EXPECT_EQ(number("18446744073709551615"), UINT64_MAX);
}

class WrongExpression : public testing::TestWithParam<WrongText> {};

TEST_P(WrongExpression, is_refused_where_it_goes_wrong) {
  const auto parsed = parse_expression(GetParam().text);
  ASSERT_FALSE(parsed) << GetParam().text;
  EXPECT_EQ(parsed.error().column, GetParam().column) << parsed.error().message;
  EXPECT_THAT(parsed.error().message, HasSubstr(GetParam().reason));
}
INSTANTIATE_TEST_SUITE_P(
    Each, WrongExpression,
    testing::Values(WrongText{"", 0, "expected a value"}, WrongText{"arg0 <", 6, "expected a value"},
                    WrongText{"arg0 = 1", 5, "expected an operator"},
                    WrongText{"arg0 && (arg1 == 2", 18, "expected ')'"},
                    WrongText{"arg0 == 12x", 8, "'12x' is no number"}, WrongText{"arg0 == 5mb", 8, "units are"},
                    WrongText{"arg0 == 99999999999999999999", 8, "does not fit 64 bits"},
                    WrongText{"arg0 == 20000000000h", 8, "does not fit 64 bits"},
                    WrongText{"comm == \"cat", 8, "quote does not end"}, WrongText{"arg0 in {}", 9, "expected a value"},
                    WrongText{"arg0 in {1, }", 12, "expected a value"}, WrongText{"arg256 == 1", 0, "expected a value"},
                    WrongText{"1 ? 2", 5, "expected ':'"}));
INSTANTIATE_TEST_SUITE_P(
    InTheWordsOfOtherLanguages, WrongExpression,
    testing::Values(WrongText{"arg0 = 1", 5, "; to compare is =="},
                    WrongText{"arg0 == 1 and arg1 == 2", 10, "; that is &&"},
                    WrongText{"arg0 == 1 or arg1 == 2", 10, "; that is ||"}, WrongText{"not arg0", 4, "; not is !"},
                    WrongText{"strlen(arg0) > 3", 6,
                              "; there is no function 'strlen', but str(), hex(), ntop() and sizeof()"}));

TEST(WrongExpressions, have_no_hint_where_nothing_is_known_of_what_was_meant) {
  for (const char* text : {"12(arg0)", "arg0 arg1", "arg0 ==", "orders == android andes"}) {
    const auto parsed = parse_expression(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, testing::Not(HasSubstr(";"))) << text;
  }
}

/// What a hint names is there.
TEST(WrongExpressions, are_told_of_functions_that_there_are) {
  for (const char* text : {"str(arg0) == \"a\"", "hex(arg0)", "ntop(arg0)", "arg0 == sizeof(struct foo)"})
    EXPECT_TRUE(parse_expression(text)) << text;
}

TEST(ParseExpression, takes_attributes_of_threads_by_their_keys) {
  const auto asked = parse_expression(R"(arg0 > 1 && trace_attribute( "http.route" ) == "/cart")");
  ASSERT_TRUE(asked) << asked.error().message;
  const ExpressionNode& attribute = asked->root.of[1].of[0];
  EXPECT_EQ(attribute.op, Operator::attribute);
  EXPECT_EQ(attribute.of[0].text, "http.route");
  EXPECT_EQ(attribute.column, 29U);
  for (const char* none :
       {"trace_attribute(arg0) == \"a\"", "trace_attribute() == \"a\"", "trace_attribute('c') == \"a\""})
    EXPECT_FALSE(parse_expression(none)) << none;
  EXPECT_TRUE(parse_expression("trace_attribute > 1")) << "an argument may be called so";
}

TEST(ParseExpression, bounds_what_it_takes) {
  std::string deep(100, '(');
  const auto nested = parse_expression(deep + "1" + std::string(100, ')'));
  ASSERT_FALSE(nested);
  EXPECT_EQ(nested.error().kind, ErrorKind::limit) << nested.error().message;
  std::string negated(5000, '~');
  EXPECT_FALSE(parse_expression(negated + "1"));
  std::string wide = "1";
  for (int i = 0; i < 5000; ++i) wide += "+1";
  const auto long_one = parse_expression(wide);
  ASSERT_FALSE(long_one);
  EXPECT_EQ(long_one.error().kind, ErrorKind::limit) << long_one.error().message;
}

}  // namespace
}  // namespace usdt::test
