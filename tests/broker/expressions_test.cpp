// SPDX-License-Identifier: BSD-2-Clause
// Filters come as they were, compile to the same instructions, and others are refused.
#include "broker/expressions.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "expr/compile.hpp"
#include "expr/row.hpp"
#include "usdt/plan.hpp"
#include "usdt/table.hpp"
#include "usdt/testing/event_builder.hpp"

namespace usdt::broker {
namespace {

using Node = TypedExpression::Node;

const std::vector<Arg>& arguments() {
  static const AttachPlan plan =
      usdt::testing::synthetic_plan("a", "b", Machine::x86_64, "8@%rdi -4@%esi 8f@%rdx 8@%rcx -8@%r8 1@%cl", {});
  return plan.args[0];
}

TypedExpression typed(std::string_view text) {
  const auto expression = parse_expression(text);
  EXPECT_TRUE(expression) << text;
  std::vector<std::size_t> places;
  for (const ValuePath& path : expression->values)
    places.push_back(find_arg(arguments(), path.root).value_or(TypedExpression::kNoArgument));
  auto made = TypedExpression::check(*expression, arguments(), places);
  EXPECT_TRUE(made) << text << ": " << made.error().message;
  return *made;
}

std::vector<std::uint8_t> bytes_of(const TypedExpression& filter) {
  ByteWriter out;
  write(out, filter);
  return {out.bytes().begin(), out.bytes().end()};
}

bool same(const bpf_insn& a, const bpf_insn& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

constexpr const char* kFilters[] = {"arg0 > 100",
                                    "arg1 == -1 || arg1 % 2 == 0 && !(arg3 & 0xff)",
                                    "arg1 in {1, 2, 3}",
                                    "arg2 > 0.5",
                                    "arg1 > 2.5",
                                    "pid == 4711 && comm == \"nginx\"",
                                    "str(arg0) == \"GET /\"",
                                    "str(arg0) =~ \"GET /*\"",
                                    "str(arg0) =~ \"*slow*[0-9]?\"",
                                    "str(arg0) == str(arg3)",
                                    "duration > 10ms",
                                    "(arg4 < 0 ? -arg4 : arg4) >> 3 >= ~arg1",
                                    "arg3 / arg0 != 7"};

TEST(Filters, CompileThereToWhatTheyCompileToHere) {
  for (const char* text : kFilters) {
    const TypedExpression filter = typed(text);
    EXPECT_TRUE(is_plain(filter)) << text;
    const auto bytes = bytes_of(filter);
    ByteReader in(bytes);
    TypedExpression back;
    ASSERT_TRUE(read(in, back, 6)) << text;
    EXPECT_TRUE(in.at_end());
    EXPECT_EQ(filter, back) << text;
    const auto here = expr::compile(filter, {}), there = expr::compile(back, {});
    ASSERT_TRUE(here && there) << text;
    EXPECT_TRUE(std::ranges::equal(here->instructions, there->instructions, same)) << text;
    EXPECT_EQ(here->table, there->table);
  }
}

TEST(Filters, ReadNoArgumentThatNoSiteHas) {
  const auto bytes = bytes_of(typed("arg5 > 1"));
  ByteReader in(bytes), narrow(bytes);
  TypedExpression back;
  EXPECT_TRUE(read(in, back, 6));
  EXPECT_FALSE(read(narrow, back, 5));
}

/// Whatever is taken is compiled without harm: the compiler trusts its trees. Returns how many of `tries` changed forms
/// of an expression were taken.
int compile_changed(const TypedExpression& expression, int tries, std::mt19937_64& random) {
  const auto good = bytes_of(expression);
  int compiled = 0;
  for (int n = 0; n < tries; ++n) {
    auto bytes = good;
    for (std::uint64_t left = 1 + random() % 3; left > 0; --left)
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random() % (random() % 2 == 0 ? 256 : 48));
    ByteReader in(bytes);
    TypedExpression filter;
    if (!read(in, filter, 6)) continue;
    ++compiled;
    static_cast<void>(expr::compile(filter, {}));
  }
  return compiled;
}

TEST(Filters, WhateverIsReadCanBeCompiled) {
  std::mt19937_64 random(4711);
  int compiled = 0;
  for (const char* text : kFilters) compiled += compile_changed(typed(text), 5'000, random);
  EXPECT_GT(compiled, 5'000);
}

Node node(Operator op, std::vector<Node> of = {}, ExpressionType type = ExpressionType::signed_integer) {
  return {.op = op, .type = type, .of = std::move(of)};
}

TEST(Filters, TreesThatNoExpressionBecomesAreRefused) {
  const Node one{.op = Operator::integer, .bits = 1};
  Node text = node(Operator::text_of, {}, ExpressionType::text);
  Node glob = node(Operator::matches, {text});
  glob.bits = static_cast<std::uint64_t>(TextMatch::glob);
  glob.text = std::string(100, '?');
  Node field = node(Operator::field);
  field.bits = 99;
  for (const Node& root :
       {node(Operator::add),
        node(Operator::add, {one}),
        node(Operator::negate),
        node(Operator::conditional, {one, one}),
        node(Operator::row),
        node(Operator::row, {one}),
        node(Operator::row, {node(Operator::part, {text})}),
        node(Operator::row, {node(Operator::part, {one}), node(Operator::part, {one}), node(Operator::part, {one})}),
        node(Operator::part, {one}),
        node(Operator::equal, {text, one}),
        node(Operator::less, {text, text}),
        node(Operator::equal, {one}),
        node(Operator::matches, {one}),
        node(Operator::matches),
        glob,
        field,
        text,
        node(Operator::log2_bucket, {one, one}),
        node(Operator::in, {one, one}),
        node(Operator::hex, {one}),
        node(Operator::equal,
             {node(Operator::real, {}, ExpressionType::real32), node(Operator::real, {}, ExpressionType::real64)}),
        node(Operator::equal, {node(Operator::add, {one, one}, ExpressionType::real64),
                               node(Operator::real, {}, ExpressionType::real64)}),
        node(Operator::text, {}, ExpressionType::text),
        node(Operator::value)}) {
    const TypedExpression filter = ExpressionMaker::make(root, {});
    EXPECT_FALSE(is_plain(filter)) << static_cast<int>(root.op) << " of " << root.of.size();
  }
  EXPECT_TRUE(is_plain(ExpressionMaker::make(one, {})));
}

TEST(Filters, ATreeThatIsTooDeepIsRefused) {
  Node deep{.op = Operator::integer, .bits = 1};
  for (int n = 0; n < 200; ++n) deep = node(Operator::negate, {deep});
  const auto bytes = bytes_of(ExpressionMaker::make(deep, {}));
  ByteReader in(bytes);
  TypedExpression filter;
  EXPECT_FALSE(read(in, filter, 6));
}

/// The row that keys and a value become.
TypedExpression row(const std::vector<std::string>& keys, const std::string& value, bool reals = false) {
  TableQuestion table;
  for (const std::string& key : keys) table.keys.push_back(*parse_expression(key));
  if (!value.empty()) table.value = *parse_expression(value);
  table.reals = reals;
  const Expression whole = expr::row_of(nullptr, table);
  std::vector<std::size_t> places;
  for (const ValuePath& path : whole.values)
    places.push_back(find_arg(arguments(), path.root).value_or(TypedExpression::kNoArgument));
  auto made = TypedExpression::check(whole, arguments(), places);
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

TEST(Rows, CompileThereToWhatTheyCompileToHere) {
  for (const TypedExpression& each :
       {row({"pid", "comm"}, ""), row({"arg0", "hex(arg3)"}, "arg1"), row({"str(arg0)"}, "duration"),
        row({"probe"}, ""), row({"arg1 / 10", "cpu"}, "arg0"), row({}, "arg1"), row({"arg2"}, "", true)}) {
    EXPECT_TRUE(is_plain(each));
    const auto bytes = bytes_of(each);
    ByteReader in(bytes);
    TypedExpression back;
    ASSERT_TRUE(read(in, back, 6));
    EXPECT_EQ(each, back);
    const auto here = expr::compile(each, {}), there = expr::compile(back, {});
    ASSERT_TRUE(here && there);
    EXPECT_TRUE(std::ranges::equal(here->instructions, there->instructions, same));
  }
}

TEST(Rows, WhateverIsReadCanBeCompiled) {
  std::mt19937_64 random(4712);
  int compiled = 0;
  for (const TypedExpression& each :
       {row({"pid", "comm"}, "arg1"), row({"str(arg0)", "hex(arg3)"}, "duration"), row({"arg2"}, "arg1", true)})
    compiled += compile_changed(each, 10'000, random);
  EXPECT_GT(compiled, 1'000);
}

}  // namespace
}  // namespace usdt::broker
