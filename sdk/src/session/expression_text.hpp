// SPDX-License-Identifier: BSD-2-Clause
// Expressions as they are asked of a site: constants are folded, and each operand is a value of the site.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "usdt/expression.hpp"

namespace usdt::session {

/// The names of a site's values, by their positions in its list of arguments.
using ValueNames = std::vector<std::string>;

/// Returns one node of `expression` in C's notation, each operation within another one in parentheses.
[[nodiscard]] std::string expression_text(const TypedExpression& expression, const TypedExpression::Node& node,
                                          const ValueNames& names);

/// "i64", "u64", "f32", "f64", "text".
[[nodiscard]] std::string_view type_text(ExpressionType type) noexcept;

}  // namespace usdt::session
