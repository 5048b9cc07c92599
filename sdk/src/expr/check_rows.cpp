// SPDX-License-Identifier: BSD-2-Clause
// Types of expressions: the keys and values of a table's rows.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "expr/checker.hpp"
#include "expr/numbers.hpp"
#include "expr/row.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Type = ExpressionType;
using Op = Operator;

/// What no real of the type is between that and `real`.
std::uint64_t bits_not_below(Type type, double real) {
  if (type == Type::real64) return std::bit_cast<std::uint64_t>(real);
  auto narrow = static_cast<float>(real);
  if (static_cast<double>(narrow) < real) narrow = std::nextafterf(narrow, std::numeric_limits<float>::infinity());
  return std::bit_cast<std::uint32_t>(narrow);
}

}  // namespace

Result<Node> Checker::bucket(const ExpressionNode& node) {
  auto of = number_or_real(node.of[0]);
  if (!of) return of;
  Node made{.op = Op::log2_bucket};
  made.of = {std::move(*of), Node{.op = Op::integer, .bits = node.of[1].bits}};
  return is_real(made.of[0].type) ? made : folded(node, std::move(made));
}

Result<Node> Checker::linear_bucket(const ExpressionNode& node) {
  auto of = number_or_real(node.of[0]);
  if (!of) return of;
  if (is_real(of->type)) return linear_bucket_of_real(node, std::move(*of));
  if (node.of[4].bits != 0)
    return wrong(node.of[0], fmt::format("{} is no real: its ranges are of whole numbers", name_of(node.of[0])));
  return check(linear_bucket_of_integer(node));
}

Result<Node> Checker::linear_bucket_of_real(const ExpressionNode& node, Node of) {
  const auto number = [&](std::size_t n) { return static_cast<Int128>(static_cast<std::int64_t>(node.of[n].bits)); };
  const Int128 min = number(1), max = number(2), step = number(3);
  const auto digits = static_cast<unsigned>(node.of[4].bits);
  if ((max - min + step - 1) / step > static_cast<Int128>(kMostRealBuckets))
    return wrong(node.of[0], fmt::format("more than {} ranges of a real", kMostRealBuckets));
  const Type type = of.type;
  Node made{.op = Op::linear_bucket};
  made.of.push_back(std::move(of));
  const auto add = [&](const Int128& bound) {
    const double real = decimal(static_cast<std::int64_t>(bound), digits);
    made.of.push_back({.op = Op::real, .type = type, .bits = bits_not_below(type, real)});
  };
  for (Int128 bound = min; bound < max; bound += step) add(bound);
  add(max);
  return made;
}

Result<Node> Checker::row(const ExpressionNode& node) {
  Node made{.op = Op::row, .bits = node.bits};
  for (std::size_t i = 0; i < node.of.size(); ++i) {
    const ExpressionNode& inner = node.of[i].of[0];
    auto checked = i == 0 ? condition(inner) : i <= node.bits ? key(inner) : number_or_real(inner);
    if (!checked) return fail(checked.error().within(node.of[i].text));
    Node part{.op = Op::part, .type = checked->type, .text = node.of[i].text};
    part.of = {std::move(*checked)};
    made.of.push_back(std::move(part));
  }
  return made;
}

Result<Node> Checker::number_or_real(const ExpressionNode& node) {
  if (!is_argument(node)) return number(node);
  auto checked = check(node);
  return checked && is_real(checked->type) ? checked : number(node);
}

Result<Node> Checker::key(const ExpressionNode& node) {
  if (node.op == Op::field && static_cast<HitField>(node.bits) == HitField::probe)
    return Node{.op = Op::field, .type = Type::signed_integer, .bits = node.bits};
  if (node.op == Op::field && is_only_a_key(static_cast<HitField>(node.bits)))
    return Node{.op = Op::field, .type = Type::stack, .bits = node.bits};
  if (node.op == Op::fingerprint) {
    auto of = key(node.of[0]);
    if (!of || of->op != Op::text_of) return of;
    Node made{.op = Op::fingerprint, .type = Type::text};
    made.of = {std::move(*of)};
    return made;
  }
  if (node.op == Op::hex || node.op == Op::ntop) return shown(node);
  if (is_declared_text(node) && args_[places_[node.bits]].readable())
    return text_of({.op = Op::text_of, .of = {node}, .column = node.column});
  auto checked = check(node);
  if (checked && (checked->op == Op::text || checked->op == Op::real))
    return wrong(node, "a literal is the same for every hit");
  return checked;
}

Result<Node> Checker::shown(const ExpressionNode& node) {
  auto of = number(node.of[0]);
  if (!of) return of;
  Node made{.op = node.op, .type = Type::unsigned_integer};
  made.of = {std::move(*of)};
  return made;
}

}  // namespace usdt::expr
