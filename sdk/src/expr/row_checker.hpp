// SPDX-License-Identifier: BSD-2-Clause
// Types of the keys and values of a table's rows. Private to expr/.
#pragma once

#include "expr/checker.hpp"

namespace usdt::expr {

/// Gives types to the parts of a row: its condition, its keys, its value.
class RowChecker {
 public:
  using Node = TypedExpression::Node;

  /// `checker` lives as long.
  explicit RowChecker(Checker& checker) : checker_(checker) {}

  /// Errors name the part, since their columns are those of its text.
  [[nodiscard]] Result<Node> row(const ExpressionNode& node);

 private:
  /// A pointer to characters is the text.
  Result<Node> key(const ExpressionNode& node);
  Result<Node> field(const ExpressionNode& node);
  Result<Node> fingerprint(const ExpressionNode& node);
  /// A number that is shown in its own way.
  Result<Node> shown(const ExpressionNode& node);

  Checker& checker_;
};

}  // namespace usdt::expr
