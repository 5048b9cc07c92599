// SPDX-License-Identifier: BSD-2-Clause
// Ranges of reals that hits are counted in. Private to expr/.
#pragma once

#include "usdt/expression.hpp"
#include "usdt/result.hpp"

namespace usdt::expr {

/// Makes the bucket of a real, `of`, with its bounds as reals of that type. `node`: as it was asked for. Errors:
/// invalid_argument (more than kMostRealBuckets).
[[nodiscard]] Result<TypedExpression::Node> linear_bucket_of_real(const ExpressionNode& node, TypedExpression::Node of);

}  // namespace usdt::expr
