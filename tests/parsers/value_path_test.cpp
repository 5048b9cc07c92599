// SPDX-License-Identifier: BSD-2-Clause
// Ways to values: C compilers are asked what the operators mean in tests/live/resolve/members_test.py, here is their
// order.
#include "usdt/value_path.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace usdt {
namespace {

/// "arg1 (struct foo *) ->x": the root and the steps in the order they are taken.
std::string steps_of(std::string_view text) {
  const auto path = parse_value_path(text);
  if (!path)
    return "at column " + std::to_string(path.error().column.value_or(99)) + ": " +
           std::string(to_string(path.error().kind));
  const auto* number = std::get_if<std::uint8_t>(&path->root);
  std::string out = number ? fmt::format("arg{}", *number) : std::get<std::string>(path->root);
  for (const PathStep& step : path->steps) {
    switch (step.kind) {
      case PathStep::Kind::member:
        out += " ." + step.name;
        break;
      case PathStep::Kind::pointer_member:
        out += " ->" + step.name;
        break;
      case PathStep::Kind::element:
        out += fmt::format(" [{}]", step.index);
        break;
      case PathStep::Kind::dereference:
        out += " *";
        break;
      case PathStep::Kind::address_of:
        out += " &";
        break;
      case PathStep::Kind::cast:
        out += fmt::format(" ({})", step.name);
        break;
      case PathStep::Kind::size_of:
        out += " sizeof";
        break;
      case PathStep::Kind::bytes:
        out += " buf";
        break;
      case PathStep::Kind::address:
        out += " ntop";
        break;
      case PathStep::Kind::distance:
        out += " - " + step.name;
        break;
    }
  }
  return out;
}

TEST(ValuePaths, arguments_are_by_number_or_name) {
  EXPECT_EQ(steps_of("arg0"), "arg0");
  EXPECT_EQ(steps_of(" arg255 "), "arg255");
  EXPECT_EQ(steps_of("retval"), "retval");
  EXPECT_EQ(steps_of("argument"), "argument");
  EXPECT_EQ(steps_of("(this)"), "this");
}

TEST(ValuePaths, operators_behind_an_operand_are_taken_before_those_in_front_of_it) {
  EXPECT_EQ(steps_of("req->headers[2].name"), "req ->headers [2] .name");
  EXPECT_EQ(steps_of("*p->next"), "p ->next *");
  EXPECT_EQ(steps_of("(*p).next"), "p * .next");
  EXPECT_EQ(steps_of("**p[3]"), "p [3] * *");
  EXPECT_EQ(steps_of("((struct foo *)arg1)->x"), "arg1 (struct foo *) ->x");
  EXPECT_EQ(steps_of("(struct foo *)arg1->x"), "arg1 ->x (struct foo *)");
  EXPECT_EQ(steps_of("*(ns::Foo<int> **)arg1"), "arg1 (ns::Foo<int> **) *");
  EXPECT_EQ(steps_of("&p->next"), "p ->next &");
  EXPECT_EQ(steps_of("&((char *)arg0)[24]"), "arg0 (char *) [24] &");
  EXPECT_EQ(steps_of("*&p"), "p & *");
  EXPECT_EQ(steps_of("( ( req ) ) -> a . b [ 1 ]"), "req ->a .b [1]");
}

TEST(ValuePaths, sizes_are_of_types_and_of_values) {
  EXPECT_EQ(steps_of("sizeof(struct foo)"), "struct foo sizeof");
  EXPECT_EQ(steps_of("sizeof(*p)"), "p * sizeof");
  EXPECT_EQ(steps_of("sizeof(req->a[1])"), "req ->a [1] sizeof");
  EXPECT_EQ(steps_of("sizeofs"), "sizeofs");
}

TEST(ValuePaths, rust_calls_members_of_tuples_by_number) { EXPECT_EQ(steps_of("pair.0.1x"), "pair .__0 .__1x"); }

TEST(ValuePaths, two_with_a_minus_in_between_are_a_distance) {
  EXPECT_EQ(steps_of("end - begin"), "end - begin");
  EXPECT_EQ(steps_of(" arg1-arg0 "), "arg1 - arg0");
  EXPECT_EQ(steps_of("b->last - b -> pos"), "b ->last - b -> pos");
  EXPECT_EQ(parse_value_path(" a [1]-  b ")->text, "a [1] - b") << "as a name that is alike however it is written";
  for (const std::string_view bad : {"a - ", "a - - b", "a - b - c", "a - 1", "- a", "a -- b"})
    EXPECT_NE(steps_of(bad).find("syntax"), std::string::npos) << bad << ": " << steps_of(bad);
}

TEST(ValuePaths, know_where_each_step_is) {
  const auto path = parse_value_path("  req->peer [2]. port");
  ASSERT_TRUE(path);
  EXPECT_EQ(path->text, "req->peer [2]. port");
  ASSERT_EQ(path->steps.size(), 3U);
  EXPECT_EQ(path->steps[0].column, 5U);
  EXPECT_EQ(path->steps[1].column, 12U);
  EXPECT_EQ(path->steps[2].column, 15U);
}

TEST(ValuePaths, refuse_what_is_none_and_say_where) {
  EXPECT_EQ(steps_of(""), "at column 0: syntax");
  EXPECT_EQ(steps_of("req->"), "at column 3: syntax");
  EXPECT_EQ(steps_of("arg256"), "at column 0: syntax");
  EXPECT_EQ(steps_of("arg1x"), "at column 0: syntax");
  for (const std::string_view bad :
       {"req-", "req.", "req[x]", "req[-]", "req[--1]", "req[", "(req", "req)", "*", "&", "p&", "a+b", "a b", "1",
        "sizeof()", "()", "((struct foo *))->x", "p->a[99999999999999999999]"})
    EXPECT_NE(steps_of(bad).find("syntax"), std::string::npos) << bad << ": " << steps_of(bad);
}

TEST(ValuePaths, have_an_end) {
  EXPECT_EQ(parse_value_path("p" + std::string(1, '.') + "a").value().steps.size(), 1U);
  std::string deep = "p";
  for (int i = 0; i < 100; ++i) deep += "->a";
  EXPECT_EQ(parse_value_path(deep).error().kind, ErrorKind::limit);
  EXPECT_FALSE(parse_value_path(std::string(1000000, '*') + "p"));
  EXPECT_FALSE(parse_value_path(std::string(1000000, '(') + "p"));
  EXPECT_FALSE(parse_value_path(std::string(1000000, '(') + "p" + std::string(1000000, ')')));
}

}  // namespace
}  // namespace usdt
