// SPDX-License-Identifier: BSD-2-Clause
#include "session/expression_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "io/escape.hpp"

namespace usdt::session {
namespace {

using Node = TypedExpression::Node;

/// As expressions write an operator that stands before or between its operands; empty: it is none.
std::string_view sign_of(Operator op) noexcept {
  constexpr std::array<std::pair<Operator, std::string_view>, 21> kSigns{{
      {Operator::negate, "-"},       {Operator::complement, "~"},     {Operator::logical_not, "!"},
      {Operator::multiply, "*"},     {Operator::divide, "/"},         {Operator::remainder, "%"},
      {Operator::add, "+"},          {Operator::subtract, "-"},       {Operator::shift_left, "<<"},
      {Operator::shift_right, ">>"}, {Operator::less, "<"},           {Operator::less_equal, "<="},
      {Operator::greater, ">"},      {Operator::greater_equal, ">="}, {Operator::equal, "=="},
      {Operator::not_equal, "!="},   {Operator::bit_and, "&"},        {Operator::bit_xor, "^"},
      {Operator::bit_or, "|"},       {Operator::logical_and, "&&"},   {Operator::logical_or, "||"},
  }};
  const auto* found = std::ranges::find(kSigns, op, &std::pair<Operator, std::string_view>::first);
  return found == kSigns.end() ? std::string_view() : found->second;
}

/// A pattern that only `text` matches.
std::string glob_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

class Writer {
 public:
  Writer(const TypedExpression& expression, const ValueNames& names) : expression_(expression), names_(names) {}

  [[nodiscard]] std::string text(const Node& node) const {
    if (!sign_of(node.op).empty()) return operation(node);
    if (node.op == Operator::integer) return integer(node);
    if (node.op == Operator::real) return real(node);
    if (node.op == Operator::text) return io::quoted(node.text);
    if (node.op == Operator::value) return name(node.bits);
    if (node.op == Operator::field) return std::string(to_string(static_cast<HitField>(node.bits)));
    if (node.op == Operator::matches) return matched(node, "==");
    if (node.op == Operator::text_of)
      return fmt::format("str({}{})", name(node.bits), node.of.empty() ? "" : ", " + text(node.of[0]));
    if (node.op == Operator::attribute) return fmt::format("trace_attribute({})", io::quoted(node.text));
    if (node.op == Operator::conditional)
      return fmt::format("{} ? {} : {}", within(node.of[0]), within(node.of[1]), within(node.of[2]));
    if (node.op == Operator::hex) return fmt::format("hex({})", text(node.of[0]));
    if (node.op == Operator::ntop) return fmt::format("ntop({})", text(node.of[0]));
    if (node.op == Operator::log2_bucket) return fmt::format("log2({})", text(node.of[0]));
    if (node.op == Operator::linear_bucket) return fmt::format("linear({})", text(node.of[0]));
    return node.of.empty() ? std::string() : text(node.of[0]);  // a part of a row
  }

 private:
  [[nodiscard]] std::string operation(const Node& node) const {
    // "!=" of texts is the opposite of what they match.
    if (node.op == Operator::logical_not && node.of[0].op == Operator::matches && node.of[0].bits == 0)
      return matched(node.of[0], "!=");
    if (node.of.size() == 1) return fmt::format("{}{}", sign_of(node.op), within(node.of[0]));
    std::string all;
    for (const Node& each : node.of) {
      if (!all.empty()) all += fmt::format(" {} ", sign_of(node.op));
      all += each.op == node.op && is_chain(node.op) ? text(each) : within(each);  // "a && b && c" needs none
    }
    return all;
  }

  /// Texts are compared with a literal, with how one begins, or with a pattern.
  [[nodiscard]] std::string matched(const Node& node, std::string_view sign) const {
    const auto how = static_cast<TextMatch>(node.bits);
    const bool begins = how == TextMatch::prefix;
    return fmt::format("{} {} {}", text(node.of[0]), how == TextMatch::whole ? sign : "=~",
                       io::quoted(begins ? glob_escaped(node.text) + "*" : node.text));
  }

  [[nodiscard]] static std::string integer(const Node& node) {
    const bool is_signed = node.type == ExpressionType::signed_integer;
    return is_signed ? fmt::format("{}", static_cast<std::int64_t>(node.bits)) : fmt::format("{}", node.bits);
  }

  [[nodiscard]] static std::string real(const Node& node) {
    if (node.type == ExpressionType::real32)
      return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(node.bits)));
    return fmt::format("{}", std::bit_cast<double>(node.bits));
  }

  [[nodiscard]] static bool is_chain(Operator op) { return op == Operator::logical_and || op == Operator::logical_or; }

  [[nodiscard]] std::string within(const Node& node) const {
    const bool one = node.of.size() < 2 && node.op != Operator::matches;
    return one ? text(node) : fmt::format("({})", text(node));
  }

  [[nodiscard]] const std::string& name(std::uint64_t value) const {
    return names_[expression_.args()[static_cast<std::size_t>(value)]];
  }

  const TypedExpression& expression_;
  const ValueNames& names_;
};

}  // namespace

std::string expression_text(const TypedExpression& expression, const Node& node, const ValueNames& names) {
  return Writer(expression, names).text(node);
}

std::string_view type_text(ExpressionType type) noexcept {
  switch (type) {
    case ExpressionType::signed_integer:
      return "i64";
    case ExpressionType::unsigned_integer:
      return "u64";
    case ExpressionType::real32:
      return "f32";
    case ExpressionType::real64:
      return "f64";
    case ExpressionType::text:
      return "text";
    case ExpressionType::stack:
      return "stack";
  }
  return {};
}

}  // namespace usdt::session
