// SPDX-License-Identifier: BSD-2-Clause
// Types of what is asked of hits: of expressions (expression.hpp), of the words in them (hit_field.hpp) and of keys of
// tables (table.hpp). Plain values.
#pragma once

#include <cstdint>

namespace usdt {
inline namespace v1 {

/// Names the type of the value that an expression computes.
enum class ExpressionType : std::uint8_t {
  signed_integer,    ///< of 64 bits; every integer that is narrower becomes one and keeps its value
  unsigned_integer,  ///< of 64 bits
  real32,            ///< a float, as its bits
  real64,            ///< a double, as its bits
  text,              ///< a text; it can only be compared, or be a key of a table
  stack,             ///< a stack; it can only be a key of a table
};

}  // namespace v1
}  // namespace usdt
