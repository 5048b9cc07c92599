// SPDX-License-Identifier: BSD-2-Clause
// Answers over what was recorded of a hit.
#include <optional>

#include "expr/numbers.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using Node = TypedExpression::Node;
using Op = Operator;

class Evaluator {
 public:
  Evaluator(const TypedExpression& expression, const HitFacts& facts) : expression_(expression), facts_(facts) {}

  [[nodiscard]] std::optional<std::uint64_t> value(const Node& node) const {
    switch (node.op) {
      case Op::integer:
      case Op::real:
        return node.bits;
      case Op::value:
        return facts_.value(expression_.args()[node.bits]);
      case Op::field:
        return facts_.field(static_cast<HitField>(node.bits));
      case Op::logical_and:
      case Op::logical_or:
        return either(node);
      case Op::conditional: {
        const auto condition = value(node.of[0]);
        return condition ? value(node.of[*condition != 0 ? 1 : 2]) : std::nullopt;
      }
      case Op::matches:
        return text_matches(node);
      case Op::part:
        return value(node.of[0]);
      case Op::text:
      case Op::text_of:
      case Op::in:
      case Op::row:
        return std::nullopt;  // of their own they are no number: check() makes comparisons of texts
      case Op::negate:
      case Op::complement:
      case Op::logical_not:
      case Op::multiply:
      case Op::divide:
      case Op::remainder:
      case Op::add:
      case Op::subtract:
      case Op::shift_left:
      case Op::shift_right:
      case Op::less:
      case Op::less_equal:
      case Op::greater:
      case Op::greater_equal:
      case Op::equal:
      case Op::not_equal:
      case Op::bit_and:
      case Op::bit_xor:
      case Op::bit_or:
      case Op::log2_bucket:
        return computed(node);
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<std::uint64_t> either(const Node& node) const {
    const bool decides = node.op == Op::logical_or;
    const auto left = value(node.of[0]);
    if (!left) return std::nullopt;
    if ((*left != 0) == decides) return decides ? 1 : 0;
    const auto right = value(node.of[1]);
    if (!right) return std::nullopt;
    return *right != 0 ? 1 : 0;
  }

  [[nodiscard]] std::optional<std::uint64_t> computed(const Node& node) const {
    const auto left = value(node.of[0]);
    if (!left) return std::nullopt;
    const expr::Number a{*left, node.of[0].type == ExpressionType::signed_integer};
    expr::Number b;
    if (node.of.size() > 1) {
      const auto right = value(node.of[1]);
      if (!right) return std::nullopt;
      b = {*right, node.of[1].type == ExpressionType::signed_integer};
    }
    const ExpressionType type = node.of[0].type;
    if (type == ExpressionType::real32 || type == ExpressionType::real64)
      return of_reals(node.op, expr::real_of(type, a.bits), expr::real_of(type, b.bits)) ? 1 : 0;
    const auto result = expr::apply(node.op, a, b);
    return result ? std::optional(result->bits) : std::nullopt;
  }

  static bool of_reals(Op op, double a, double b) {
    if (a != a || b != b) return op == Op::not_equal;
    return expr::holds(op, a < b ? -1 : a > b ? 1 : 0);
  }

  /// As the kernel compares them. Node::bits: whether the literal is only what the text begins with.
  [[nodiscard]] std::optional<std::uint64_t> text_matches(const Node& node) const {
    const Node& subject = node.of[0];
    auto text = subject.op == Op::field ? facts_.comm() : facts_.text(expression_.args()[subject.bits]);
    if (!text) return std::nullopt;
    if (expr::ends_at_nul(subject)) text = text->substr(0, text->find('\0'));
    return (node.bits != 0 ? text->starts_with(node.text) : *text == node.text) ? 1 : 0;
  }

  const TypedExpression& expression_;
  const HitFacts& facts_;
};

}  // namespace

std::optional<std::uint64_t> evaluate(const TypedExpression& expression, const HitFacts& facts) {
  return evaluate(expression, expression.root(), facts);
}

std::optional<std::uint64_t> evaluate(const TypedExpression& expression, const TypedExpression::Node& node,
                                      const HitFacts& facts) {
  return Evaluator(expression, facts).value(node);
}

}  // namespace v1
}  // namespace usdt
