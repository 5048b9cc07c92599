// SPDX-License-Identifier: BSD-2-Clause
#include "expr/numbers.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <limits>
#include <string>

namespace usdt::expr {
namespace {

constexpr std::uint64_t kSign = 1ULL << 63;

bool is_negative(Number n) noexcept { return n.is_signed && (n.bits & kSign) != 0; }

/// Towards 0, of magnitudes: INT64_MIN / -1 wraps as any other sum does.
std::optional<Number> divide(Operator op, Number a, Number b) {
  if (b.bits == 0) return std::nullopt;
  const bool is_signed = a.is_signed && b.is_signed;
  if (!is_signed) return Number{op == Operator::divide ? a.bits / b.bits : a.bits % b.bits, false};
  const std::uint64_t x = is_negative(a) ? 0 - a.bits : a.bits;
  const std::uint64_t y = is_negative(b) ? 0 - b.bits : b.bits;
  const bool quotient = op == Operator::divide;
  const std::uint64_t result = quotient ? x / y : x % y;
  const bool negative = quotient ? is_negative(a) != is_negative(b) : is_negative(a);
  return Number{negative ? 0 - result : result, true};
}

Number shift(Operator op, Number a, Number by) {
  const bool beyond = by.bits > 63;
  if (op == Operator::shift_left) return {beyond ? 0 : a.bits << by.bits, a.is_signed};
  const std::uint64_t sign = is_negative(a) ? ~0ULL : 0;
  if (beyond) return {sign, a.is_signed};
  const std::uint64_t filled = by.bits == 0 ? 0 : sign << (64 - by.bits);
  return {a.bits >> by.bits | filled, a.is_signed};
}

/// TableQuestion's log2_buckets(): of 2^`sub_bits` buckets from each power of 2 to the next.
Number log2_bucket(Number a, unsigned sub_bits) {
  const std::uint64_t magnitude = is_negative(a) ? 0 - a.bits : a.bits;
  std::uint64_t bucket = magnitude;
  if (magnitude >> sub_bits != 0) {
    const unsigned beyond = static_cast<unsigned>(std::bit_width(magnitude)) - 1 - sub_bits;
    bucket = (std::uint64_t{beyond} << sub_bits) + (magnitude >> beyond);
  }
  return {is_negative(a) ? 0 - bucket : bucket, true};
}

}  // namespace

int compare(Number a, Number b) noexcept {
  if (is_negative(a) != is_negative(b)) return is_negative(a) ? -1 : 1;
  if (a.bits == b.bits) return 0;
  return a.bits < b.bits ? -1 : 1;  // of two negative ones, too, in two's complement
}

bool holds(Operator comparison, int order) noexcept {
  if (comparison == Operator::less) return order < 0;
  if (comparison == Operator::less_equal) return order <= 0;
  if (comparison == Operator::greater) return order > 0;
  if (comparison == Operator::greater_equal) return order >= 0;
  return (order == 0) == (comparison == Operator::equal);
}

bool ends_at_nul(const TypedExpression::Node& text) noexcept {
  return text.of.empty() || text.of[0].op == Operator::integer;
}

bool is_comparison(Operator op) noexcept { return op >= Operator::less && op <= Operator::not_equal; }

double real_of(ExpressionType type, std::uint64_t bits) noexcept {
  if (type == ExpressionType::real32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

bool is_integer(ExpressionType type) noexcept {
  return type == ExpressionType::signed_integer || type == ExpressionType::unsigned_integer;
}

bool is_real(ExpressionType type) noexcept { return type == ExpressionType::real32 || type == ExpressionType::real64; }

unsigned mantissa_bits(ExpressionType type) noexcept { return type == ExpressionType::real32 ? 23 : 52; }

std::uint64_t infinity(ExpressionType type) noexcept {
  return type == ExpressionType::real32 ? 0x7f80'0000 : 0x7ff0'0000'0000'0000;
}

std::uint64_t key_of_real(ExpressionType type, std::uint64_t bits) noexcept {
  if (type == ExpressionType::real32) bits &= 0xffff'ffff;
  const std::uint64_t sign = type == ExpressionType::real32 ? kSign >> 32 : kSign;
  const std::uint64_t magnitude = bits & (sign - 1);
  if (magnitude > infinity(type)) return infinity(type) | infinity(type) >> 1;  // quiet
  return magnitude == 0 ? 0 : bits;
}

/// 0 is alone; then exponents and the highest bits of mantissas are in the order of the numbers.
std::optional<std::int64_t> log2_bucket_of_real(ExpressionType type, std::uint64_t bits, unsigned sub_bits) noexcept {
  const std::uint64_t number = key_of_real(type, bits);
  const std::uint64_t sign = type == ExpressionType::real32 ? kSign >> 32 : kSign;
  const std::uint64_t magnitude = number & (sign - 1);
  if (magnitude > infinity(type)) return std::nullopt;
  if (magnitude == 0) return 0;
  const auto bucket = static_cast<std::int64_t>(1 + (magnitude >> (mantissa_bits(type) - sub_bits)));
  return (number & sign) != 0 ? -bucket : bucket;
}

double decimal(std::int64_t number, unsigned digits) {
  const std::string text = fmt::format("{}e-{}", number, digits);
  double real = 0;
  std::from_chars(text.data(), text.data() + text.size(), real);
  return real;
}

std::uint64_t order_key(ExpressionType type, std::uint64_t bits) noexcept {
  if (type == ExpressionType::real32) bits <<= 32;
  if (bits << 1 == 0) bits = 0;
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

std::uint64_t bits_of_order(ExpressionType type, std::uint64_t key) noexcept {
  const std::uint64_t bits = (key & kSign) != 0 ? key ^ kSign : ~key;
  return type == ExpressionType::real32 ? bits >> 32 : bits;
}

std::optional<Number> apply(Operator op, Number a, Number b) {
  const bool is_signed = a.is_signed && b.is_signed;
  if (is_comparison(op)) return Number{holds(op, compare(a, b)) ? 1U : 0U, true};
  if (op == Operator::negate) return Number{0 - a.bits, a.is_signed};
  if (op == Operator::complement) return Number{~a.bits, a.is_signed};
  if (op == Operator::logical_not) return Number{a.bits == 0 ? 1U : 0U, true};
  if (op == Operator::multiply) return Number{a.bits * b.bits, is_signed};
  if (op == Operator::add) return Number{a.bits + b.bits, is_signed};
  if (op == Operator::subtract) return Number{a.bits - b.bits, is_signed};
  if (op == Operator::bit_and) return Number{a.bits & b.bits, is_signed};
  if (op == Operator::bit_xor) return Number{a.bits ^ b.bits, is_signed};
  if (op == Operator::bit_or) return Number{a.bits | b.bits, is_signed};
  if (op == Operator::divide || op == Operator::remainder) return divide(op, a, b);
  if (op == Operator::log2_bucket) return log2_bucket(a, static_cast<unsigned>(b.bits));
  return shift(op, a, b);
}

}  // namespace usdt::expr
