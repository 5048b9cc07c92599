// SPDX-License-Identifier: BSD-2-Clause
// Numbers that lists compute of what was recorded. Private to the library.
#pragma once

#include <algorithm>
#include <string_view>

#include "expr/numbers.hpp"
#include "usdt/expression.hpp"

namespace usdt::expr {

/// Whether a text that values lead to is compared: events have no more of it than was asked for.
[[nodiscard]] inline bool compares_texts(const TypedExpression::Node& node) {
  return node.op == Operator::text_of ||
         std::ranges::any_of(node.of, [](const TypedExpression::Node& each) { return compares_texts(each); });
}

/// Returns the reason why an expression is no number that is computed of an event; empty: it is one.
[[nodiscard]] inline std::string_view why_no_number(const TypedExpression& computed) {
  if (compares_texts(computed.root())) return "texts are compared in questions (--where, --by), and not in lists";
  return is_integer(computed.root().type) ? std::string_view() : "no whole number";
}

}  // namespace usdt::expr
