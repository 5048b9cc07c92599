// SPDX-License-Identifier: BSD-2-Clause
// Nodes of typed expressions, as checks make them. Private to expr/.
#pragma once

#include <string>

#include "usdt/expression.hpp"
#include "usdt/result.hpp"

namespace usdt::expr {

/// Fails with invalid_argument, at the column of a node.
inline tl::unexpected<Error> wrong(const ExpressionNode& at, std::string reason) {
  return fail(Error{ErrorKind::invalid_argument, std::move(reason), 0, at.column});
}

/// A literal truth value.
inline TypedExpression::Node truth(bool value) { return {.op = Operator::integer, .bits = value ? 1U : 0U}; }

/// An operation on one operand, or on two.
[[nodiscard]] TypedExpression::Node operation(Operator op, ExpressionType type, TypedExpression::Node of);
[[nodiscard]] TypedExpression::Node pair(Operator op, TypedExpression::Node left, TypedExpression::Node right,
                                         ExpressionType type = ExpressionType::signed_integer);

/// Gives a number another type, and keeps its bits.
[[nodiscard]] TypedExpression::Node with_type(ExpressionType type, TypedExpression::Node node);

/// Replaces an operation on constants by its value. `at` is what it was written as.
[[nodiscard]] Result<TypedExpression::Node> folded(const ExpressionNode& at, TypedExpression::Node made);

}  // namespace usdt::expr
