// SPDX-License-Identifier: BSD-2-Clause
// Types of expressions over the arguments of one site. Private to expr/.
#pragma once

#include <cstddef>
#include <vector>

#include "expr/names.hpp"
#include "expr/text_checker.hpp"
#include "expr/used_values.hpp"
#include "usdt/arg.hpp"
#include "usdt/expression.hpp"
#include "usdt/result.hpp"

namespace usdt::expr {

/// Goes through the tree of an expression once, and makes a typed one of it: Names says what its leaves are,
/// TextChecker, compare_reals() and folded() what operators make of them.
class Checker {
 public:
  using Node = TypedExpression::Node;

  /// As TypedExpression::check(). All live as long.
  Checker(const Expression& expression, const std::vector<Arg>& args, const std::vector<std::size_t>& places)
      : used_(args), names_(expression, args, places, used_), texts_(names_) {}
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  /// Any expression but a row.
  [[nodiscard]] Result<Node> check(const ExpressionNode& node);
  /// `node` where a truth value is wanted: any integer.
  [[nodiscard]] Result<Node> condition(const ExpressionNode& node);
  [[nodiscard]] Result<Node> number(const ExpressionNode& node);
  /// A number, or a real of the hit.
  [[nodiscard]] Result<Node> number_or_real(const ExpressionNode& node);

  [[nodiscard]] const Names& names() const noexcept { return names_; }
  /// The values that were read so far.
  [[nodiscard]] const UsedValues& used() const noexcept { return used_; }

 private:
  Result<Node> text_of(const ExpressionNode& node);
  static Result<Node> field(const ExpressionNode& node);
  Result<Node> both(const ExpressionNode& node);
  Result<Node> unary(const ExpressionNode& node);
  Result<Node> arithmetic(const ExpressionNode& node);
  Result<Node> computed(const ExpressionNode& node);
  Result<Node> conditional(const ExpressionNode& node);
  /// Makes of "x in {a, b}" the chain "x == a || x == b".
  Result<Node> in(const ExpressionNode& node);
  Result<Node> compared(Operator op, const ExpressionNode& a, const ExpressionNode& b, const ExpressionNode& at);
  /// A signed number, whatever it is a bucket of.
  Result<Node> bucket(const ExpressionNode& node);
  Result<Node> linear_bucket(const ExpressionNode& node);

  UsedValues used_;
  Names names_;
  TextChecker texts_;
};

}  // namespace usdt::expr
