// SPDX-License-Identifier: BSD-2-Clause
#include "expr/text_checker.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/try.hpp"
#include "expr/context_words.hpp"
#include "expr/glob.hpp"
#include "expr/numbers.hpp"
#include "expr/typed_nodes.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Type = ExpressionType;
using Op = Operator;

constexpr std::size_t kLongestLiteral = 255;

/// How many characters an array of them has room for.
std::optional<std::uint64_t> room_of(const Arg& length) {
  const auto* constant = std::get_if<Constant>(&length.location);
  return length.hidden && constant != nullptr ? std::optional(constant->bits) : std::nullopt;
}

Result<void> check_order(Op op, const ExpressionNode& at) {
  if (op == Op::equal || op == Op::not_equal || op == Op::matches) return {};
  return wrong(at, "texts are equal or not: they have no order here");
}

Node unless(Op op, Node made) {
  if (op != Op::not_equal) return made;
  Node negated{.op = Op::logical_not};
  negated.of = {std::move(made)};
  return negated;
}

/// Sets how the literal of "=~" is compared.
Result<void> set_match(Node& made, const ExpressionNode& with) {
  Glob::Beginning begins = Glob::beginning(made.text);
  made.bits = static_cast<std::uint64_t>(begins.match);
  if (begins.match != TextMatch::glob)
    made.text = std::move(begins.text);
  else if (!Glob::parse(made.text))
    return wrong(with, fmt::format("a pattern of more than {} characters", Glob::kMost));
  return {};
}

Result<Node> two_literals(Op op, const ExpressionNode& at, const Node& left, const ExpressionNode& with,
                          const Node& right) {
  TRY(check_order(op, at));
  if (op != Op::matches) return truth((left.text == right.text) == (op == Op::equal));
  const auto pattern = Glob::parse(right.text);
  if (!pattern) return wrong(with, fmt::format("a pattern of more than {} characters", Glob::kMost));
  return truth(pattern->matches(left.text, false).value_or(false));
}

}  // namespace

Result<Node> TextChecker::literal(const ExpressionNode& node) {
  if (node.text.size() > kLongestLiteral)
    return wrong(node, fmt::format("a text of more than {} bytes", kLongestLiteral));
  return Node{.op = Op::text, .type = Type::text, .text = node.text};
}

Result<Node> TextChecker::text_of(const ExpressionNode& node, const Node& value) {
  const ExpressionNode& pointer = node.of[0];
  if (!names_.points(pointer))
    return wrong(pointer, fmt::format("{} is no pointer to a text", names_.name_of(pointer)));
  if (node.of.size() > 1) TRY(check_length(pointer, node.of[1]));
  return text_at(pointer, value.bits);
}

Result<void> TextChecker::check_length(const ExpressionNode& pointer, const ExpressionNode& length) const {
  if (!names_.is_argument(length))
    return wrong(length,
                 "the length of a text is an argument, what one leads to, or the distance to its end: str(p, n), "
                 "str(p, end - p)");
  const usdt::Type& type = names_.arg_of(length).type;
  if (type.is_float() || type.size > 8)
    return wrong(length, fmt::format("{} is no number of bytes", names_.name_of(length)));
  const auto known = names_.arg_of(pointer).length;
  if (known && *known == names_.position_of(length)) return {};
  return wrong(length, known ? fmt::format("{} has another length", names_.name_of(pointer))
                             : fmt::format("{} was not read with that length", names_.name_of(pointer)));
}

Result<Node> TextChecker::text_at(const ExpressionNode& pointer, std::uint64_t bits) {
  Node made{.op = Op::text_of, .type = Type::text, .bits = bits};
  const auto length = names_.arg_of(pointer).length;
  if (!length) return made;
  if (const auto room = room_of(names_.arg_at(*length))) {
    made.of.push_back(Node{.op = Op::integer, .bits = *room});
    return made;
  }
  auto of = TRY(names_.argument(*length, fmt::format("the length of {}", names_.name_of(pointer)), pointer));
  made.of.push_back(std::move(of));
  return made;
}

Result<Node> TextChecker::text_compared(const ExpressionNode& at, Node subject) {
  if (subject.op == Op::value && names_.points(at)) return text_at(at, subject.bits);
  if (subject.op == Op::value) return wrong(at, fmt::format("{} is no text", names_.name_of(at)));
  if (subject.type != Type::text) return wrong(at, "a text is compared with a number");
  return subject;
}

namespace {

bool is_context_word(const Node& node) {
  return node.op == Op::field && expr::is_context_word(static_cast<HitField>(node.bits));
}

/// Makes the literal what programs compare.
Result<Node> with_digits(Op op, Node subject, const ExpressionNode& with, const std::string& digits) {
  const auto field = static_cast<HitField>(subject.bits);
  if (op != Op::equal && op != Op::not_equal)
    return wrong(with, fmt::format("{} is equal to a number or not", to_string(field)));
  auto bytes = context_bytes(field, digits);
  if (!bytes)
    return wrong(with, fmt::format("{} is a text of {} hexadecimal digits; \"\": the thread works for no trace",
                                   to_string(field), digits_of(field)));
  Node made{.op = Op::matches, .bits = static_cast<std::uint64_t>(TextMatch::whole), .text = *std::move(bytes)};
  made.of = {std::move(subject)};
  return unless(op, std::move(made));
}

}  // namespace

Result<Node> TextChecker::with_literal(Op op, const ExpressionNode& at, Node left, const ExpressionNode& with,
                                       const Node& literal) {
  if (literal.op != Op::text)
    return wrong(with, literal.type == Type::text ? "a text matches a literal, \"in quotes\""
                                                  : "a text is compared with a number");
  auto subject = TRY(text_compared(at, std::move(left)));
  if (subject.op == Op::text) return two_literals(op, at, subject, with, literal);
  if (is_context_word(subject)) return with_digits(op, std::move(subject), with, literal.text);
  if (ends_at_nul(subject) && literal.text.find('\0') != literal.text.npos)
    return wrong(with, "a text with a NUL, which ends every text whose length is not known");
  TRY(check_order(op, at));
  Node made{.op = Op::matches, .text = literal.text};
  if (op == Op::matches) TRY(set_match(made, with));
  made.of = {std::move(subject)};
  return unless(op, std::move(made));
}

Result<Node> TextChecker::two_texts(Op op, const ExpressionNode& a, Node left, const ExpressionNode& b, Node right) {
  auto first = TRY(text_compared(a, std::move(left)));
  auto second = TRY(text_compared(b, std::move(right)));
  TRY(check_order(op, a));
  if (is_context_word(first) || is_context_word(second))
    return wrong(a, "trace_id and span_id are compared with a literal, \"in quotes\"");
  return unless(op, pair(Op::equal, std::move(first), std::move(second)));
}

}  // namespace usdt::expr
