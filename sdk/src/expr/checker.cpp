// SPDX-License-Identifier: BSD-2-Clause
#include "expr/checker.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/try.hpp"
#include "expr/buckets.hpp"
#include "expr/numbers.hpp"
#include "expr/real_comparisons.hpp"
#include "expr/row.hpp"
#include "expr/typed_nodes.hpp"

namespace usdt::expr {
namespace {

using Node = TypedExpression::Node;
using Type = ExpressionType;
using Op = Operator;

/// Both are signed, and so is what they make.
Type common_type(const Node& a, const Node& b) {
  const bool is_signed = a.type == Type::signed_integer && b.type == Type::signed_integer;
  return is_signed ? Type::signed_integer : Type::unsigned_integer;
}

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
      return TextChecker::literal(node);
    case Op::value:
      return names_.value(node);
    case Op::text_of:
      return text_of(node);
    case Op::attribute:
      return Node{.op = Op::attribute, .type = Type::text, .text = node.of[0].text};
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
      return compared(node.op, node.of[0], node.of[1], node);
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
      return wrong(node, "a row is the whole of an expression");
  }
  return wrong(node, "no expression");
}

Result<Node> Checker::condition(const ExpressionNode& node) {
  auto checked = TRY(check(node));
  if (!is_integer(checked.type)) return wrong(node, "a text or a real is neither true nor false");
  return checked;
}

Result<Node> Checker::number(const ExpressionNode& node) {
  auto checked = TRY(check(node));
  if (is_real(checked.type))
    return wrong(node, fmt::format("{} is a real, which can only be compared", names_.name_of(node)));
  if (checked.type == Type::text) return wrong(node, "a text can only be compared");
  return checked;
}

Result<Node> Checker::number_or_real(const ExpressionNode& node) {
  if (!names_.is_argument(node)) return number(node);
  auto checked = check(node);
  return checked && is_real(checked->type) ? checked : number(node);
}

Result<Node> Checker::text_of(const ExpressionNode& node) {
  const auto pointer = TRY(check(node.of[0]));
  return texts_.text_of(node, pointer);
}

Result<Node> Checker::field(const ExpressionNode& node) {
  const auto field = static_cast<HitField>(node.bits);
  if (info_of(field).type == Type::stack)
    return wrong(node, fmt::format("'{}' can be a key of a table, and nothing else", to_string(field)));
  return Node{.op = Op::field, .type = info_of(field).type, .bits = static_cast<std::uint64_t>(field)};
}

Result<Node> Checker::both(const ExpressionNode& node) {
  auto left = TRY(condition(node.of[0]));
  auto right = TRY(condition(node.of[1]));
  const bool decides = node.op == Op::logical_or;
  if (left.op == Op::integer && (left.bits != 0) == decides) return truth(decides);
  if (left.op == Op::integer && right.op == Op::integer) return truth(right.bits != 0);
  return pair(node.op, std::move(left), std::move(right));
}

Result<Node> Checker::unary(const ExpressionNode& node) {
  auto operand = node.op == Op::logical_not ? condition(node.of[0]) : number(node.of[0]);
  if (!operand) {
    if (node.op != Op::negate || node.of[0].op != Op::real) return operand;
    return Node{.op = Op::real, .type = Type::real64, .bits = node.of[0].bits ^ 1ULL << 63};
  }
  const Type type = node.op == Op::logical_not ? Type::signed_integer : operand->type;
  return folded(node, operation(node.op, type, std::move(*operand)));
}

Result<Node> Checker::arithmetic(const ExpressionNode& node) {
  const bool bits = node.op == Op::bit_and || node.op == Op::bit_or || node.op == Op::bit_xor;
  if (!bits) return computed(node);
  const Names::OfEnum names(names_, node.of[0], node.of[1], false);
  return computed(node);
}

Result<Node> Checker::computed(const ExpressionNode& node) {
  auto left = TRY(number(node.of[0]));
  auto right = TRY(number(node.of[1]));
  const bool shifts = node.op == Op::shift_left || node.op == Op::shift_right;
  const Type type = shifts ? common_type(left, left) : common_type(left, right);
  return folded(node, pair(node.op, std::move(left), std::move(right), type));
}

Result<Node> Checker::conditional(const ExpressionNode& node) {
  auto asked = TRY(condition(node.of[0]));
  auto yes = TRY(number(node.of[1]));
  auto no = TRY(number(node.of[2]));
  const Type type = common_type(yes, no);
  if (asked.op == Op::integer) return with_type(type, std::move(asked.bits != 0 ? yes : no));
  Node made{.op = Op::conditional, .type = type};
  made.of = {std::move(asked), std::move(yes), std::move(no)};
  return made;
}

Result<Node> Checker::in(const ExpressionNode& node) {
  Node chain = truth(false);
  for (std::size_t i = 1; i < node.of.size(); ++i) {
    auto equal = TRY(compared(Op::equal, node.of[0], node.of[i], node));
    chain = i == 1 ? std::move(equal) : pair(Op::logical_or, std::move(chain), std::move(equal));
  }
  return chain;
}

Result<Node> Checker::compared(Op op, const ExpressionNode& a, const ExpressionNode& b, const ExpressionNode& at) {
  const Names::OfEnum names(names_, a, b, true);
  auto left = TRY(check(a));
  auto right = check(b);
  if (!right) {
    const bool unknown_name = b.op == Op::value && !names_.is_argument(b);
    if (unknown_name && (left.type == Type::text || names_.is_declared_text(a)))
      right.error().message += fmt::format("; a text is in quotes: \"{}\"", names_.name_of(b));
    return right;
  }
  if (left.op == Op::text && right->op != Op::text) {
    if (op != Op::equal && op != Op::not_equal) return wrong(a, "the literal comes second");
    return texts_.with_literal(op, b, std::move(*right), a, left);
  }
  if (right->op == Op::text || op == Op::matches) return texts_.with_literal(op, a, std::move(left), b, *right);
  const bool texts =
      (op == Op::equal || op == Op::not_equal) && names_.is_declared_text(a) && names_.is_declared_text(b);
  if (right->type == Type::text || left.type == Type::text || texts)
    return texts_.two_texts(op, a, std::move(left), b, std::move(*right));
  if (is_real(left.type) || is_real(right->type)) return compare_reals(op, std::move(left), std::move(*right), at);
  return folded(at, pair(op, std::move(left), std::move(*right)));
}

Result<Node> Checker::bucket(const ExpressionNode& node) {
  auto of = TRY(number_or_real(node.of[0]));
  const bool real = is_real(of.type);
  Node made = pair(Op::log2_bucket, std::move(of), Node{.op = Op::integer, .bits = node.of[1].bits});
  return real ? made : folded(node, std::move(made));
}

Result<Node> Checker::linear_bucket(const ExpressionNode& node) {
  auto of = TRY(number_or_real(node.of[0]));
  if (is_real(of.type)) return linear_bucket_of_real(node, std::move(of));
  if (node.of[4].bits != 0)
    return wrong(node.of[0], fmt::format("{} is no real: its ranges are of whole numbers", names_.name_of(node.of[0])));
  return check(linear_bucket_of_integer(node));
}

}  // namespace usdt::expr
