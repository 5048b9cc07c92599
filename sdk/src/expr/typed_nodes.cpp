// SPDX-License-Identifier: BSD-2-Clause
#include "expr/typed_nodes.hpp"

#include <algorithm>
#include <utility>

#include "expr/numbers.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;

}  // namespace

Node operation(Operator op, ExpressionType type, Node of) {
  Node made{.op = op, .type = type};
  made.of.push_back(std::move(of));
  return made;
}

Node pair(Operator op, Node left, Node right, ExpressionType type) {
  Node made{.op = op, .type = type};
  made.of = {std::move(left), std::move(right)};
  return made;
}

Node with_type(ExpressionType type, Node node) {
  if (node.op == Operator::integer) node.type = type;
  if (node.type == type) return node;
  return pair(Operator::bit_or, std::move(node), Node{.op = Operator::integer, .type = type}, type);
}

Result<Node> folded(const ExpressionNode& at, Node made) {
  if (!std::ranges::all_of(made.of, [](const Node& each) { return each.op == Operator::integer; })) return made;
  const auto number_of = [](const Node& each) {
    return Number{each.bits, each.type == ExpressionType::signed_integer};
  };
  const auto result = apply(made.op, number_of(made.of[0]), number_of(made.of.back()));
  if (!result) return wrong(at, "a division by 0");
  return Node{.op = Operator::integer,
              .type = result->is_signed ? ExpressionType::signed_integer : ExpressionType::unsigned_integer,
              .bits = result->bits};
}

}  // namespace usdt::expr
