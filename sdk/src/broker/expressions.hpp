// SPDX-License-Identifier: BSD-2-Clause
// Filters over the wire: trees that say what the broker compiles into its programs. Private to broker/.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "usdt/expression.hpp"

namespace usdt::broker {

/// Makes an expression of a tree that was read, and checked.
struct ExpressionMaker {
  [[nodiscard]] static TypedExpression make(TypedExpression::Node root, std::vector<std::uint8_t> args,
                                            std::vector<TypedExpression::OfList> of_lists = {},
                                            std::vector<TypedExpression::KeptText> kept_texts = {}) {
    TypedExpression made;
    made.root_ = std::move(root);
    made.args_ = std::move(args);
    made.of_lists_ = std::move(of_lists);
    made.kept_texts_ = std::move(kept_texts);
    return made;
  }
};

/// Whether it is a filter, or a row of a table, that the compiler can make instructions of: each node has the operands
/// that are expected of it, and the values lead to each other in no circle. A kept text, whose value in a program is an
/// address in the kernel, is nothing but a text.
[[nodiscard]] bool is_sound(const TypedExpression& filter);
/// Says why a filter has more in it than the service takes; empty: it has not.
[[nodiscard]] std::string why_too_large(const TypedExpression& filter);

void write(ByteWriter& out, const TypedExpression& filter);
/// False: it is none, or is_sound() says no. `arguments`: the most of any site.
[[nodiscard]] bool read(ByteReader& in, TypedExpression& filter, std::uint32_t arguments);

}  // namespace usdt::broker
