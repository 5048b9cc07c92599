// SPDX-License-Identifier: BSD-2-Clause
// Types of expressions: comparisons of numbers, and what all comparisons begin with.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "expr/checker.hpp"
#include "expr/numbers.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Type = ExpressionType;
using Op = Operator;

bool is_literal(const Node& node) { return node.op == Op::integer || node.op == Op::real; }

/// (An integer above 2^53 becomes the nearest double.)
void to_real64(Node& literal) {
  if (literal.op == Op::real) return;
  const double real = literal.type == Type::signed_integer
                          ? static_cast<double>(static_cast<std::int64_t>(literal.bits))
                          : static_cast<double>(literal.bits);
  literal = {.op = Op::real, .type = Type::real64, .bits = std::bit_cast<std::uint64_t>(real)};
}

Op mirrored(Op op) {
  if (op == Op::less) return Op::greater;
  if (op == Op::greater) return Op::less;
  if (op == Op::less_equal) return Op::greater_equal;
  if (op == Op::greater_equal) return Op::less_equal;
  return op;
}

}  // namespace

Result<Node> Checker::in(const ExpressionNode& node) {
  Result<Node> chain = truth(false);
  for (std::size_t i = 1; i < node.of.size(); ++i) {
    auto equal = compared(Op::equal, node.of[0], node.of[i], node);
    if (!equal) return equal;
    if (i == 1) {
      chain = std::move(equal);
      continue;
    }
    Node made{.op = Op::logical_or};
    made.of = {std::move(*chain), std::move(*equal)};
    chain = std::move(made);
  }
  return chain;
}

Result<Node> Checker::compared(Op op, const ExpressionNode& a, const ExpressionNode& b, const ExpressionNode& at) {
  const NamesOfEnum names(*this, a, b, true);
  auto left = check(a);
  if (!left) return left;
  auto right = check(b);
  if (!right) {
    const bool unknown_name = b.op == Op::value && !is_argument(b);
    if (unknown_name && (left->type == Type::text || is_declared_text(a)))
      right.error().message += fmt::format("; a text is in quotes: \"{}\"", expression_.values[b.bits].text);
    return right;
  }
  if (left->op == Op::text && right->op != Op::text) {
    if (op != Op::equal && op != Op::not_equal) return wrong(a, "the literal comes second");
    return text_and_literal(op, b, std::move(*right), a, *left);
  }
  if (right->op == Op::text || op == Op::matches) return text_and_literal(op, a, std::move(*left), b, *right);
  const bool texts = (op == Op::equal || op == Op::not_equal) && is_declared_text(a) && is_declared_text(b);
  if (right->type == Type::text || left->type == Type::text || texts)
    return two_texts(op, a, std::move(*left), b, std::move(*right));
  if (is_real(left->type) || is_real(right->type)) return reals(op, std::move(*left), std::move(*right), at);
  Node made{.op = op};
  made.of = {std::move(*left), std::move(*right)};
  return folded(at, std::move(made));
}

Result<Node> Checker::reals(Op op, Node left, Node right, const ExpressionNode& at) {
  if (is_literal(left) && is_literal(right)) {
    to_real64(left);
    to_real64(right);
    const double a = std::bit_cast<double>(left.bits);
    const double b = std::bit_cast<double>(right.bits);
    return truth(holds(op, a < b ? -1 : a > b ? 1 : 0));
  }
  const Type wanted = is_literal(left) ? right.type : left.type;
  Node& literal = is_literal(left) ? left : right;
  if (!is_real(wanted) || (!is_literal(literal) && literal.type != wanted))
    return wrong(at, "reals are compared with literals, and with reals of their own size");
  if (is_literal(literal)) {
    to_real64(literal);
    if (wanted == Type::real32) return real32(op, std::move(left), std::move(right));
  }
  return pair(op, std::move(left), std::move(right));
}

Node Checker::pair(Op op, Node left, Node right, Type type) {
  Node made{.op = op, .type = type};
  made.of = {std::move(left), std::move(right)};
  return made;
}

Result<Node> Checker::real32(Op op, Node left, Node right) {
  const bool literal_left = is_literal(left);
  if (literal_left) {
    std::swap(left, right);
    op = mirrored(op);
  }
  const double wanted = std::bit_cast<double>(right.bits);
  const auto nearest = static_cast<float>(wanted);
  const auto with = [&](Op how, float bound) {
    Node literal{.op = Op::real, .type = Type::real32, .bits = std::bit_cast<std::uint32_t>(bound)};
    return pair(how, left, std::move(literal));
  };
  if (static_cast<double>(nearest) == wanted) return with(op, nearest);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float below = static_cast<double>(nearest) < wanted ? nearest : std::nextafterf(nearest, -kInfinity);
  const float above = std::nextafterf(below, kInfinity);
  if (op == Op::less || op == Op::less_equal) return with(Op::less_equal, below);
  if (op == Op::greater || op == Op::greater_equal) return with(Op::greater_equal, above);
  // No float equals it; what cannot be read still leaves the question without an answer.
  Node never{.op = Op::logical_and};
  never.of = {with(Op::less_equal, below), with(Op::greater_equal, above)};
  if (op == Op::equal) return never;
  Node always{.op = Op::logical_not};
  always.of = {std::move(never)};
  return always;
}

}  // namespace usdt::expr
