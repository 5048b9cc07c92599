// SPDX-License-Identifier: BSD-2-Clause
// Attributes of a thread's context in expressions: programs in the kernel do not know what processes call them, so that
// only events can be asked. Private to the library.
#pragma once

#include <algorithm>

#include "usdt/expression.hpp"
#include "usdt/table.hpp"

namespace usdt::expr {

inline constexpr const char* kAttributeIsOfEvents =
    "trace_attribute(...) is asked of events: programs in the kernel do not know what processes call their attributes";

/// Whether a tree (ExpressionNode, TypedExpression::Node) asks for an attribute.
template <class Node>
[[nodiscard]] bool asks_attribute(const Node& node) {
  return node.op == Operator::attribute ||
         std::ranges::any_of(node.of, [](const Node& each) { return asks_attribute(each); });
}
[[nodiscard]] inline bool asks_attribute(const Expression& expression) { return asks_attribute(expression.root); }
/// Whether a key or the value of a table is one.
[[nodiscard]] inline bool asks_attribute(const TableQuestion& table) {
  return std::ranges::any_of(table.keys, [](const Expression& key) { return asks_attribute(key); }) ||
         (table.value && asks_attribute(*table.value));
}

}  // namespace usdt::expr
