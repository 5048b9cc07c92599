// SPDX-License-Identifier: BSD-2-Clause
// The words that an expression asks about, before it is known which of them are arguments at a site. Private to the
// library.
#pragma once

#include <algorithm>

#include "usdt/expression.hpp"

namespace usdt::expr {

/// Whether a tree of an expression may ask about a field: a word that gives way to arguments is one where a site has
/// none of that name.
[[nodiscard]] inline bool may_ask(const Expression& expression, const ExpressionNode& node, HitField field) {
  if (node.op == Operator::field && node.bits == static_cast<std::uint64_t>(field)) return true;
  if (node.op == Operator::value && info_of(field).gives_way) {
    const ValuePath& path = expression.values[node.bits];
    if (path.steps.empty() && path.root == ArgName(std::string(to_string(field)))) return true;
  }
  return std::ranges::any_of(node.of, [&](const ExpressionNode& each) { return may_ask(expression, each, field); });
}
[[nodiscard]] inline bool may_ask(const Expression& expression, HitField field) {
  return may_ask(expression, expression.root, field);
}

}  // namespace usdt::expr
