// SPDX-License-Identifier: BSD-2-Clause
// Types of texts, and of what compares them. Private to expr/.
#pragma once

#include <cstdint>

#include "expr/names.hpp"
#include "usdt/expression.hpp"
#include "usdt/result.hpp"

namespace usdt::expr {

/// Gives types to texts, and to their comparisons.
class TextChecker {
 public:
  using Node = TypedExpression::Node;

  /// `names` live as long.
  explicit TextChecker(Names& names) : names_(names) {}

  [[nodiscard]] static Result<Node> literal(const ExpressionNode& node);
  /// "str(p)", "str(p, n)": the text that `value`, the checked operand, points to.
  [[nodiscard]] Result<Node> text_of(const ExpressionNode& node, const Node& value);
  /// The comparison of `left`, which was written `at`, with `literal`, which was written `with`.
  [[nodiscard]] Result<Node> with_literal(Operator op, const ExpressionNode& at, Node left, const ExpressionNode& with,
                                          const Node& literal);
  /// The comparison of `left` and `right`, which were written `a` and `b`; neither is a literal.
  [[nodiscard]] Result<Node> two_texts(Operator op, const ExpressionNode& a, Node left, const ExpressionNode& b,
                                       Node right);

 private:
  /// "str(p, n)": the text has that length for its own, by who put the list of arguments together.
  [[nodiscard]] Result<void> check_length(const ExpressionNode& pointer, const ExpressionNode& length) const;
  /// The text that a pointer, value `bits`, points to; below it its length, where that is known: a value, or of an
  /// array of characters a literal, how many there is room for before a NUL.
  [[nodiscard]] Result<Node> text_at(const ExpressionNode& pointer, std::uint64_t bits);
  /// A pointer is taken for the text it points to where it is compared with one.
  [[nodiscard]] Result<Node> text_compared(const ExpressionNode& at, Node subject);

  Names& names_;
};

}  // namespace usdt::expr
