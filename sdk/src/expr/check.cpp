// SPDX-License-Identifier: BSD-2-Clause
// Types of expressions: what operators make of their operands.
#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "expr/checker.hpp"
#include "expr/numbers.hpp"
#include "expr/site_words.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Type = ExpressionType;
using Op = Operator;

bool is_integer(Type type) { return type == Type::signed_integer || type == Type::unsigned_integer; }

}  // namespace

Result<Node> Checker::check(const ExpressionNode& node) {
  switch (node.op) {
    case Op::integer:
      return Node{.op = Op::integer,
                  .type = node.is_unsigned ? Type::unsigned_integer : Type::signed_integer,
                  .bits = node.bits};
    case Op::real:
      return Node{.op = Op::real, .type = Type::real64, .bits = node.bits};
    case Op::text:
      return text_literal(node);
    case Op::value:
      return value(node);
    case Op::text_of:
      return text_of(node);
    case Op::field:
      return field(node);
    case Op::logical_and:
    case Op::logical_or:
      return both(node);
    case Op::logical_not:
    case Op::negate:
    case Op::complement:
      return unary(node);
    case Op::conditional:
      return conditional(node);
    case Op::in:
      return in(node);
    case Op::less:
    case Op::less_equal:
    case Op::greater:
    case Op::greater_equal:
    case Op::equal:
    case Op::not_equal:
    case Op::matches:
      return comparison(node);
    case Op::multiply:
    case Op::divide:
    case Op::remainder:
    case Op::add:
    case Op::subtract:
    case Op::shift_left:
    case Op::shift_right:
    case Op::bit_and:
    case Op::bit_xor:
    case Op::bit_or:
      return arithmetic(node);
    case Op::log2_bucket:
      return bucket(node);
    case Op::linear_bucket:
      return linear_bucket(node);
    case Op::hex:
    case Op::ntop:
      return wrong(node, "hex() and ntop() say how a key of a table is shown, a whole one");
    case Op::fingerprint:
      return wrong(node, "a fingerprint is a key of a table");
    case Op::part:
      return wrong(node, "a part is of a row");
    case Op::row:
      return row(node);
  }
  return wrong(node, "no expression");
}

Result<Node> Checker::condition(const ExpressionNode& node) {
  auto checked = check(node);
  if (checked && !is_integer(checked->type)) return wrong(node, "a text or a real is neither true nor false");
  return checked;
}

Result<Node> Checker::both(const ExpressionNode& node) {
  auto left = condition(node.of[0]);
  if (!left) return left;
  auto right = condition(node.of[1]);
  if (!right) return right;
  const bool decides = node.op == Op::logical_or;
  if (left->op == Op::integer && (left->bits != 0) == decides) return truth(decides);
  if (left->op == Op::integer && right->op == Op::integer) return truth(right->bits != 0);
  Node made{.op = node.op};
  made.of = {std::move(*left), std::move(*right)};
  return made;
}

Result<Node> Checker::unary(const ExpressionNode& node) {
  auto operand = node.op == Op::logical_not ? condition(node.of[0]) : number(node.of[0]);
  if (!operand) {
    if (node.op != Op::negate || node.of[0].op != Op::real) return operand;
    return Node{.op = Op::real, .type = Type::real64, .bits = node.of[0].bits ^ 1ULL << 63};
  }
  Node made{.op = node.op};
  if (node.op != Op::logical_not) made.type = operand->type;
  made.of = {std::move(*operand)};
  return folded(node, std::move(made));
}

Result<Node> Checker::number(const ExpressionNode& node) {
  auto checked = check(node);
  if (!checked) return checked;
  if (is_real(checked->type))
    return wrong(node, fmt::format("{} is a real, which can only be compared", name_of(node)));
  if (checked->type == Type::text) return wrong(node, "a text can only be compared");
  return checked;
}

Result<Node> Checker::arithmetic(const ExpressionNode& node) {
  const bool bits = node.op == Op::bit_and || node.op == Op::bit_or || node.op == Op::bit_xor;
  if (!bits) return computed(node);
  const NamesOfEnum names(*this, node.of[0], node.of[1], false);
  return computed(node);
}

Result<Node> Checker::computed(const ExpressionNode& node) {
  auto left = number(node.of[0]);
  if (!left) return left;
  auto right = number(node.of[1]);
  if (!right) return right;
  const bool shifts = node.op == Op::shift_left || node.op == Op::shift_right;
  const bool is_signed = left->type == Type::signed_integer && (shifts || right->type == Type::signed_integer);
  Node made{.op = node.op, .type = is_signed ? Type::signed_integer : Type::unsigned_integer};
  made.of = {std::move(*left), std::move(*right)};
  return folded(node, std::move(made));
}

Result<Node> Checker::folded(const ExpressionNode& node, Node made) {
  if (!std::ranges::all_of(made.of, [](const Node& each) { return each.op == Op::integer; })) return made;
  const auto number_of = [](const Node& each) { return Number{each.bits, each.type == Type::signed_integer}; };
  const auto result = apply(made.op, number_of(made.of[0]), number_of(made.of.back()));
  if (!result) return wrong(node, "a division by 0");
  return Node{.op = Op::integer,
              .type = result->is_signed ? Type::signed_integer : Type::unsigned_integer,
              .bits = result->bits};
}

Result<Node> Checker::conditional(const ExpressionNode& node) {
  auto asked = condition(node.of[0]);
  if (!asked) return asked;
  auto yes = number(node.of[1]);
  if (!yes) return yes;
  auto no = number(node.of[2]);
  if (!no) return no;
  const bool is_signed = yes->type == Type::signed_integer && no->type == Type::signed_integer;
  const Type type = is_signed ? Type::signed_integer : Type::unsigned_integer;
  if (asked->op == Op::integer) return with_type(type, std::move(asked->bits != 0 ? *yes : *no));
  Node made{.op = Op::conditional, .type = type};
  made.of = {std::move(*asked), std::move(*yes), std::move(*no)};
  return made;
}

Node Checker::with_type(Type type, Node node) {
  if (node.op == Op::integer) node.type = type;
  if (node.type == type) return node;
  return pair(Op::bit_or, std::move(node), Node{.op = Op::integer, .type = type}, type);
}

}  // namespace usdt::expr

namespace usdt {
inline namespace v1 {
namespace {

bool asks_for(const TypedExpression::Node& node, HitField field) {
  if (node.op == Operator::field && node.bits == static_cast<std::uint64_t>(field)) return true;
  return std::ranges::any_of(node.of, [field](const TypedExpression::Node& each) { return asks_for(each, field); });
}

}  // namespace

bool TypedExpression::asks(HitField field) const { return asks_for(root_, field); }

TypedExpression TypedExpression::at_site(const SiteWords& site) const {
  TypedExpression made = *this;
  expr::SiteFolder(site).fold(made.root_);
  return made;
}

bool TypedExpression::depends_on_site() const {
  TypedExpression other = *this;
  return expr::SiteFolder({}).fold(other.root_);
}

Result<TypedExpression> TypedExpression::check(const Expression& expression, const std::vector<Arg>& args,
                                               const std::vector<std::size_t>& places) {
  expr::Checker checker(expression, args, places);
  auto root =
      TRY(expression.root.op == Operator::row ? checker.check(expression.root) : checker.condition(expression.root));
  TypedExpression made;
  made.root_ = std::move(root);
  made.args_ = std::move(checker.used);
  made.of_lists_ = std::move(checker.of_lists);
  return made;
}

}  // namespace v1
}  // namespace usdt
