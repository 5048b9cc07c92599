// SPDX-License-Identifier: BSD-2-Clause
#include "expr/row_checker.hpp"

#include <utility>

#include "base/try.hpp"
#include "expr/typed_nodes.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Type = ExpressionType;
using Op = Operator;

}  // namespace

Result<Node> RowChecker::row(const ExpressionNode& node) {
  Node made{.op = Op::row, .bits = node.bits};
  for (std::size_t i = 0; i < node.of.size(); ++i) {
    const ExpressionNode& inner = node.of[i].of[0];
    auto checked = i == 0 ? checker_.condition(inner) : i <= node.bits ? key(inner) : checker_.number_or_real(inner);
    if (!checked) return fail(checked.error().within(node.of[i].text));
    const Type type = checked->type;
    Node part = operation(Op::part, type, std::move(*checked));
    part.text = node.of[i].text;
    made.of.push_back(std::move(part));
  }
  return made;
}

Result<Node> RowChecker::key(const ExpressionNode& node) {
  if (node.op == Op::field) return field(node);
  if (node.op == Op::fingerprint) return fingerprint(node);
  if (node.op == Op::hex || node.op == Op::ntop) return shown(node);
  if (checker_.names().is_declared_text(node) && checker_.names().arg_of(node).readable())
    return checker_.check({.op = Op::text_of, .of = {node}, .column = node.column});
  auto checked = TRY(checker_.check(node));
  if (checked.op == Op::text || checked.op == Op::real) return wrong(node, "a literal is the same for every hit");
  return checked;
}

/// Some fields are keys, and nothing else.
Result<Node> RowChecker::field(const ExpressionNode& node) {
  const auto field = static_cast<HitField>(node.bits);
  if (field == HitField::probe) return Node{.op = Op::field, .type = Type::signed_integer, .bits = node.bits};
  if (info_of(field).type == Type::stack) return Node{.op = Op::field, .type = Type::stack, .bits = node.bits};
  return checker_.check(node);
}

Result<Node> RowChecker::fingerprint(const ExpressionNode& node) {
  auto of = TRY(key(node.of[0]));
  return of.op == Op::text_of ? operation(Op::fingerprint, Type::text, std::move(of)) : std::move(of);
}

Result<Node> RowChecker::shown(const ExpressionNode& node) {
  auto of = TRY(checker_.number(node.of[0]));
  return operation(node.op, Type::unsigned_integer, std::move(of));
}

}  // namespace usdt::expr
