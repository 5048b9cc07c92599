// SPDX-License-Identifier: BSD-2-Clause
// Sums of reals without rounding: a whole number of the smallest real above 0 (U. Kulisch, "Computer Arithmetic and
// Validity", has such accumulators).
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "usdt/table.hpp"

namespace usdt {
inline namespace v1 {
namespace {

constexpr unsigned kBits = 32;  ///< of a limb; the last one has the sign
constexpr std::int64_t kMask = (std::int64_t{1} << kBits) - 1;
constexpr int kLowest = -1074;  ///< 2^that is the smallest double above 0
constexpr unsigned kMantissa = 53;

/// Moves to the next limb what is too much for one.
void carry(std::vector<std::int64_t>& limbs) {
  for (std::size_t i = 0; i + 1 < limbs.size(); ++i) {
    limbs[i + 1] += limbs[i] >> kBits;
    limbs[i] &= kMask;
  }
}

void grow(std::vector<std::int64_t>& limbs, std::size_t size) {
  if (limbs.empty()) limbs.resize(1);
  while (limbs.size() < size) {
    const std::int64_t rest = limbs.back() >> kBits;
    limbs.back() &= kMask;
    limbs.push_back(rest);
  }
}

/// 64 bits of a number without a sign, from bit `at` on.
std::uint64_t bits_from(const std::vector<std::int64_t>& limbs, std::size_t at) {
  const auto limb = [&](std::size_t n) {
    return n < limbs.size() ? static_cast<std::uint64_t>(limbs[n]) : std::uint64_t{0};
  };
  const std::size_t n = at / kBits;
  const unsigned shift = at % kBits;
  const std::uint64_t low = limb(n) | limb(n + 1) << kBits;
  return shift == 0 ? low : low >> shift | limb(n + 2) << (64 - shift);
}

bool any_bit_below(const std::vector<std::int64_t>& limbs, std::size_t end) {
  for (std::size_t n = 0; n < end / kBits; ++n)
    if (limbs[n] != 0) return true;
  const unsigned rest = end % kBits;
  return rest != 0 && (limbs[end / kBits] & ((std::int64_t{1} << rest) - 1)) != 0;
}

}  // namespace

void RealSum::add(std::int64_t number, int exponent) {
  const auto at = static_cast<std::size_t>(exponent - kLowest);
  const std::size_t n = at / kBits;
  const unsigned shift = at % kBits;
  grow(limbs_, n + 4);
  const std::uint64_t low = (static_cast<std::uint64_t>(number) & static_cast<std::uint64_t>(kMask)) << shift;
  const std::int64_t high = (number >> kBits) * (std::int64_t{1} << shift);
  limbs_[n] += static_cast<std::int64_t>(low) & kMask;
  limbs_[n + 1] += static_cast<std::int64_t>(low >> kBits) + (high & kMask);
  limbs_[n + 2] += high >> kBits;
  carry(limbs_);
}

void RealSum::add(double value) {
  if (std::isinf(value)) return add_infinity(value < 0);
  constexpr unsigned fraction = kMantissa - 1;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto exponent = static_cast<int>(bits >> fraction & 0x7ff);
  std::uint64_t mantissa = bits & ((std::uint64_t{1} << fraction) - 1);
  if (exponent > 0) mantissa |= std::uint64_t{1} << fraction;
  const auto number = static_cast<std::int64_t>(mantissa);
  add(value < 0 ? -number : number, kLowest + (exponent > 0 ? exponent - 1 : 0));
}

void RealSum::add(const RealSum& other) {
  grow(limbs_, other.limbs_.size() + 1);
  for (std::size_t n = 0; n < other.limbs_.size(); ++n) limbs_[n] += other.limbs_[n];
  carry(limbs_);
  positive_infinity_ |= other.positive_infinity_;
  negative_infinity_ |= other.negative_infinity_;
}

void RealSum::subtract(const RealSum& other) {
  grow(limbs_, other.limbs_.size() + 1);
  for (std::size_t n = 0; n < other.limbs_.size(); ++n) limbs_[n] -= other.limbs_[n];
  carry(limbs_);
}

double RealSum::value() const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (positive_infinity_ && negative_infinity_) return std::numeric_limits<double>::quiet_NaN();
  if (positive_infinity_ || negative_infinity_) return positive_infinity_ ? infinity : -infinity;
  std::vector<std::int64_t> size = limbs_;
  const bool negative = !size.empty() && size.back() < 0;
  if (negative) {
    for (std::int64_t& limb : size) limb = -limb;
    carry(size);
  }
  grow(size, size.size() + 2);  // the last limb may have more bits than others
  while (!size.empty() && size.back() == 0) size.pop_back();
  if (size.empty()) return 0;
  const std::size_t bits =
      kBits * (size.size() - 1) + static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(size.back())));
  const std::size_t dropped = bits > kMantissa ? bits - kMantissa : 0;
  std::uint64_t mantissa = bits_from(size, dropped) & ((std::uint64_t{1} << kMantissa) - 1);
  if (dropped > 0 && (bits_from(size, dropped - 1) & 1) != 0 &&
      ((mantissa & 1) != 0 || any_bit_below(size, dropped - 1)))
    ++mantissa;
  const double nearest = std::ldexp(static_cast<double>(mantissa), static_cast<int>(dropped) + kLowest);
  return negative ? -nearest : nearest;
}

void RealSum::scale(double by) {
  const double scaled = value() * by;
  *this = {};
  if (scaled == scaled) return add(scaled);
  positive_infinity_ = negative_infinity_ = true;
}

}  // namespace v1
}  // namespace usdt
