// SPDX-License-Identifier: BSD-2-Clause
// Defines what the operators on integers mean: constants are folded by it, records are evaluated by it, and the
// generated instructions are tested against it. Private to expr/.
#pragma once

#include <cstdint>
#include <optional>

#include "usdt/expression.hpp"

namespace usdt::expr {

/// A number of 64 bits and how to read it.
struct Number {
  std::uint64_t bits = 0;
  bool is_signed = true;
};

/// Unary and binary operators of integers, comparisons among them (0 or 1); `b` does not matter to unary ones. Nothing:
/// a division by 0.
[[nodiscard]] std::optional<Number> apply(Operator op, Number a, Number b);
/// -1, 0 or 1 as `a` is below `b`, equal or above, as mathematical values.
[[nodiscard]] int compare(Number a, Number b) noexcept;
/// Whether an ordering, as compare() tells it, is what a comparison asks for.
[[nodiscard]] bool holds(Operator comparison, int order) noexcept;
/// Whether it is one of "<", "<=", ">", ">=", "==" and "!=".
[[nodiscard]] bool is_comparison(Operator op) noexcept;
/// Whether a text, an argument or a field, is as far as its first NUL: no length is known, or only that of its array.
[[nodiscard]] bool ends_at_nul(const TypedExpression::Node& text) noexcept;
/// A real of `type` by its bits.
[[nodiscard]] double real_of(ExpressionType type, std::uint64_t bits) noexcept;
/// Whether it is an integer, of either sign.
[[nodiscard]] bool is_integer(ExpressionType type) noexcept;
/// Whether it is a float or double.
[[nodiscard]] bool is_real(ExpressionType type) noexcept;
/// Returns the bits of a real without what TableReal does not tell apart: the sign of 0, and all but one of the NaNs.
[[nodiscard]] std::uint64_t key_of_real(ExpressionType type, std::uint64_t bits) noexcept;
/// The key of a real's bucket by log2_buckets(). Nothing: NaN.
[[nodiscard]] std::optional<std::int64_t> log2_bucket_of_real(ExpressionType type, std::uint64_t bits,
                                                              unsigned sub_bits) noexcept;
/// Bits of a real behind the point of its mantissa: 23 or 52.
[[nodiscard]] unsigned mantissa_bits(ExpressionType type) noexcept;
/// Its infinity.
[[nodiscard]] std::uint64_t infinity(ExpressionType type) noexcept;
/// The real nearest to `number`, so many of whose digits are behind the decimal point.
[[nodiscard]] double decimal(std::int64_t number, unsigned digits);
/// An unsigned number that orders reals as their values do; 0 has one for both its signs.
[[nodiscard]] std::uint64_t order_key(ExpressionType type, std::uint64_t bits) noexcept;
/// The bits of the real that has that order_key(), with a plus before 0.
[[nodiscard]] std::uint64_t bits_of_order(ExpressionType type, std::uint64_t key) noexcept;

}  // namespace usdt::expr
