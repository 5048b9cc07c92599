// SPDX-License-Identifier: BSD-2-Clause
// Filters over the wire: trees that say what the broker compiles into its programs. Private to broker/.
#pragma once

#include "base/bytes.hpp"
#include "usdt/expression.hpp"

namespace usdt::broker {

/// Makes an expression of a tree that was read, and checked.
struct ExpressionMaker {
  [[nodiscard]] static TypedExpression make(TypedExpression::Node root, std::vector<std::uint8_t> args) {
    TypedExpression made;
    made.root_ = std::move(root);
    made.args_ = std::move(args);
    return made;
  }
};

/// Whether it is a filter, or a row of a table, that the broker takes: of numbers, reals and texts, each node with the
/// operands that the compiler expects of it. Not: values of lists and alternatives, texts that calls keep, stacks.
[[nodiscard]] bool is_plain(const TypedExpression& filter);

void write(ByteWriter& out, const TypedExpression& filter);
/// False: it is none, or is_plain() says no. `arguments`: the most of any site.
[[nodiscard]] bool read(ByteReader& in, TypedExpression& filter, std::uint32_t arguments);

}  // namespace usdt::broker
