// SPDX-License-Identifier: BSD-2-Clause
// Comparisons with reals, and of integers with literals that are reals. Private to expr/.
#pragma once

#include "usdt/expression.hpp"
#include "usdt/result.hpp"

namespace usdt::expr {

/// The comparison of two numbers, one of them a real. Comparisons are of the numbers, whatever a literal would be
/// rounded to. Errors: invalid_argument at `at` (two reals of different sizes, a real and an integer that is no
/// literal).
[[nodiscard]] Result<TypedExpression::Node> compare_reals(Operator op, TypedExpression::Node left,
                                                          TypedExpression::Node right, const ExpressionNode& at);

}  // namespace usdt::expr
