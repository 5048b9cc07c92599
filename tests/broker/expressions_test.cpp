// SPDX-License-Identifier: BSD-2-Clause
// Filters come as they were, compile to the same instructions, and others are refused.
#include "broker/expressions.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "expr/compile.hpp"
#include "expr/row.hpp"
#include "usdt/bpf/filter.h"
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
    EXPECT_TRUE(is_sound(filter)) << text;
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

Node node(Operator op, std::vector<Node> of = {}, ExpressionType type = ExpressionType::signed_integer) {
  return {.op = op, .type = type, .of = std::move(of)};
}

/// A filter about values that are related to others, and texts that records keep.
TypedExpression related(const Node& root, std::vector<TypedExpression::OfList> of_lists,
                        std::vector<TypedExpression::KeptText> texts = {}) {
  return ExpressionMaker::make(root, {0, 1, 2}, std::move(of_lists), std::move(texts));
}

Node value(std::uint64_t number) { return {.op = Operator::value, .bits = number}; }

Node text_of(std::uint64_t number) { return {.op = Operator::text_of, .type = ExpressionType::text, .bits = number}; }

Node is_equal(Node left, Node right) { return node(Operator::equal, {std::move(left), std::move(right)}); }

TypedExpression::OfList element(std::uint8_t of, std::uint8_t length) {
  return {.value = of, .element = ElementOf{.length = length, .index = 3}};
}

TypedExpression::OfList alternative(std::uint8_t of, std::uint8_t discriminant) {
  return {.value = of,
          .alternative = AlternativeOf{.discriminant = discriminant, .values = {.ranges = {{1, 4}}, .others = true}}};
}

TypedExpression::OfList length(std::uint8_t of, std::optional<std::uint8_t> first = {}, std::uint32_t size = 8) {
  return {.value = of, .counts = ElementCount{.most = 1000, .size = size, .first = first}};
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
  const std::vector<TypedExpression::KeptText> kept{{.value = 0, .slot = 0, .whole = true}};
  for (const TypedExpression& each : {related(value(0), {element(0, 1), length(1, 2), alternative(2, 1)}),
                                      related(is_equal(text_of(0), text_of(1)), {element(1, 2), length(2)}, kept)})
    compiled += compile_changed(each, 5'000, random);
  EXPECT_GT(compiled, 5'000);
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
    EXPECT_FALSE(is_sound(filter)) << static_cast<int>(root.op) << " of " << root.of.size();
  }
  EXPECT_TRUE(is_sound(ExpressionMaker::make(one, {})));
}

TEST(Relations, ComeAsTheyWere) {
  TypedExpression::OfList half{.value = 0, .half = true};
  for (const TypedExpression& each :
       {related(value(0), {element(0, 1), length(1, 2)}), related(value(0), {alternative(0, 1), half}),
        related(is_equal(text_of(0), text_of(1)), {element(0, 2)}, {{.value = 0, .slot = 3, .whole = false}})}) {
    ASSERT_TRUE(is_sound(each));
    const auto bytes = bytes_of(each);
    ByteReader in(bytes);
    TypedExpression back;
    ASSERT_TRUE(read(in, back, 6));
    EXPECT_TRUE(in.at_end());
    EXPECT_EQ(each, back);
    EXPECT_TRUE(expr::compile(back, {}));
  }
}

TEST(Relations, OfValuesThatThereAreNotOrInACircleAreRefused) {
  for (const TypedExpression& each :
       {related(value(0), {element(3, 1)}), related(value(0), {element(0, 3)}), related(value(0), {element(0, 0)}),
        related(value(0), {element(0, 1), alternative(1, 2), element(2, 0)}), related(value(0), {alternative(0, 9)}),
        related(value(0), {length(0, 7)}), related(value(0), {length(0, {}, 0)}),
        related(value(0), {length(0, {}, 1U << 31)})})
    EXPECT_FALSE(is_sound(each));
}

/// Its value in a program is an address in the kernel: nobody may learn it, or have another place read in its stead.
TEST(KeptTexts, AreNothingButTexts) {
  const std::vector<TypedExpression::KeptText> kept{{.value = 0, .slot = 0, .whole = true}};
  Node with_length = text_of(1);
  with_length.of = {value(0)};
  TypedExpression::OfList half{.value = 0, .half = true};
  EXPECT_TRUE(is_sound(related(is_equal(text_of(0), text_of(1)), {}, kept)));
  for (const TypedExpression& each :
       {related(value(0), {}, kept), related(is_equal(value(0), value(1)), {}, kept),
        related(is_equal(text_of(1), with_length), {}, kept), related(is_equal(text_of(0), text_of(1)), {half}, kept),
        related(is_equal(text_of(0), text_of(1)), {length(0)}, kept),
        related(is_equal(text_of(0), text_of(1)), {length(1, 0)}, kept),
        related(is_equal(text_of(0), text_of(1)), {element(1, 0)}, kept),
        related(is_equal(text_of(0), text_of(1)), {alternative(1, 0)}, kept),
        related(is_equal(text_of(0), text_of(1)), {}, {kept[0], kept[0]}),
        related(is_equal(text_of(0), text_of(1)), {}, {{.value = 3, .slot = 0, .whole = true}}),
        related(is_equal(text_of(0), text_of(1)), {}, {{.value = 0, .slot = USDT_KEPT_TEXT, .whole = true}})})
    EXPECT_FALSE(is_sound(each));
}

TEST(Filters, OneThatIsTooLargeIsToldBeforeItIsSent) {
  Node wide{.op = Operator::integer, .bits = 1};
  for (int n = 0; n < 13; ++n) wide = node(Operator::add, {wide, wide});
  EXPECT_EQ(why_too_large(ExpressionMaker::make(wide, {})),
            "a question of 16383 operands and operators, as it is asked: at most 8192");
  Node deep{.op = Operator::integer, .bits = 1};
  for (int n = 0; n < 2000; ++n) deep = node(Operator::negate, {deep});
  EXPECT_NE(why_too_large(ExpressionMaker::make(deep, {})).find("within each other"), std::string::npos);
  for (const char* text : kFilters) EXPECT_EQ(why_too_large(typed(text)), "");
  std::string many = "arg1 in {0";
  for (int n = 1; n < 500; ++n) many += fmt::format(", {}", n);
  const TypedExpression list = typed(many + "}");
  EXPECT_EQ(why_too_large(list), "");
  const auto bytes = bytes_of(list);
  ByteReader in(bytes);
  TypedExpression back;
  EXPECT_TRUE(read(in, back, 6));
}

TEST(Filters, ATreeThatIsTooDeepIsRefused) {
  Node deep{.op = Operator::integer, .bits = 1};
  for (int n = 0; n < 2000; ++n) deep = node(Operator::negate, {deep});
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
    EXPECT_TRUE(is_sound(each));
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
