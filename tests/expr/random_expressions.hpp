// SPDX-License-Identifier: BSD-2-Clause
// Expressions nobody thought of, over the values a, b, c ...
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "usdt/expression.hpp"

namespace usdt::test {

/// Writes expressions, with parentheses only where it feels like it: their meaning is the parsers' to find out.
class ExpressionWriter {
 public:
  enum class Style : std::uint8_t {
    ours,
    only_c,      ///< what a C compiler computes alike with 64-bit signed numbers and -fwrapv
    of_numbers,  ///< ours, over a C++ class: literals are number(N), and "c ? y : n" is choose(c, y, n)
  };
  ExpressionWriter(std::uint64_t seed, Style style) : random_(seed), style_(style) {}
  ExpressionWriter(std::uint64_t seed, bool only_c) : ExpressionWriter(seed, only_c ? Style::only_c : Style::ours) {}

  std::string expression(int depth = 4);
  /// A number worth computing with.
  std::uint64_t number();
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

 private:
  std::string leaf();
  std::mt19937_64 random_;
  Style style_;
};

/// How many random expressions are tried: `usual`, or `whole` of them with USDT_LONG=1.
[[nodiscard]] std::size_t how_many(std::size_t usual, std::size_t whole);

/// Arguments "a" to "f": the first four of 64 bits, signed and not, then i32 and u16.
[[nodiscard]] std::vector<Arg> six_arguments(bool all_signed);
/// `text` typed over them. Fails the test where it is refused.
[[nodiscard]] Result<TypedExpression> typed(const std::string& text, const std::vector<Arg>& args);

/// A hit whose arguments are these numbers; none where `unread` has its bit.
struct NumbersOfHit : HitFacts {
  std::vector<std::uint64_t> numbers;
  std::uint32_t unread = 0;
  std::string comm_text = "comm";
  [[nodiscard]] std::optional<std::uint64_t> value(std::size_t position) const override {
    return (unread >> position & 1) != 0 ? std::nullopt : std::optional(numbers[position]);
  }
  [[nodiscard]] std::optional<std::string_view> text(std::size_t) const override { return std::nullopt; }
  [[nodiscard]] std::optional<std::uint64_t> field(HitField) const override { return 77; }
  [[nodiscard]] std::optional<std::string_view> comm() const override { return comm_text; }
};

/// Hits of `args` with random numbers, the last of them with some unread.
[[nodiscard]] std::vector<NumbersOfHit> random_hits(ExpressionWriter& writer, const std::vector<Arg>& args);

}  // namespace usdt::test
