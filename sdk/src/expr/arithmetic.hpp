// SPDX-License-Identifier: BSD-2-Clause
// Instructions that compute with numbers in registers: they know nothing of hits. Private to expr/.
#pragma once

#include <cstddef>
#include <cstdint>

#include "expr/instructions.hpp"
#include "usdt/expression.hpp"

namespace usdt::expr {

/// Computes in r0 and r1, with r2 to r5.
class Arithmetic : protected Assembler {
 protected:
  using Node = TypedExpression::Node;
  using Op = Operator;

  /// r0 = r0 OP r1
  void compute(const Node& node);
  void negate_if_negative(std::uint8_t sign, std::uint8_t number);
  /// Makes the bits of a _Float16 those of the float of its value, as half_from_bits() does, with r5.
  void widen_half(std::uint8_t reg);
  /// Goes on only where `reg` has one of these values; with r5.
  void require(const AlternativeValues& values, std::uint8_t reg);
  /// Makes the order_key() of what is in a register, with r2 and r3; goes to `odd` where that is no number.
  void make_order_key(std::uint8_t reg, ExpressionType type, Label odd);
  /// Makes the key_of_real() of numbers.cpp of what is in r0.
  void key_of_real(ExpressionType type);
  /// r0 becomes the number of the bucket that `node`, one of the buckets, says its value is in.
  void bucket(const Node& node);

  /// The place that a program goes to where it has no answer.
  [[nodiscard]] Label undecided() const noexcept { return undecided_; }

 private:
  void shift(const Node& node);
  void divide(const Node& node);
  void log2_bucket(const Node& node);
  void log2_bucket_of_real(const Node& node);
  void linear_bucket(const Node& node);
  void search(const Node& node, std::size_t first, std::size_t last, Label end);

  Label undecided_ = label();
};

}  // namespace usdt::expr
