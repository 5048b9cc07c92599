// SPDX-License-Identifier: BSD-2-Clause
// Expressions as they are asked of a site: with what was folded, and what each operand turned out to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt_trace {

/// What the values of a site are called, by their positions in its list of arguments.
using ValueNames = std::vector<std::string>;

/// One node of `expression` in C's notation, each operation within another one in parentheses.
[[nodiscard]] std::string expression_text(const usdt::TypedExpression& expression,
                                          const usdt::TypedExpression::Node& node, const ValueNames& names);

/// "i64", "u64", "f32", "f64", "text".
[[nodiscard]] std::string_view type_text(usdt::ExpressionType type) noexcept;

}  // namespace usdt_trace
