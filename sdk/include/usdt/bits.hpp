// SPDX-License-Identifier: BSD-2-Clause
// Numbers from the raw bits that BPF programs hand on, since BPF has no floating point: float_from_bits() makes a
// double of the bits of a _Float16, float or double, half_from_bits() a float, and cut() extends a narrow integer.
//     std::optional<double> seconds = usdt::float_from_bits(record.bits, sizeof(float));
// Threads: pure functions; nothing is allocated.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace usdt {
inline namespace v1 {

/// Returns the value of the bits of a _Float16 (IEEE 754 binary16). A float holds each such value exactly.
[[nodiscard]] constexpr float half_from_bits(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0) {
    const float small = static_cast<float>(fraction) / (1U << 24);  // subnormal, or 0
    return sign != 0 ? -small : small;
  }
  const std::uint32_t raised = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return std::bit_cast<float>(sign | raised << 23 | fraction << 13);
}

/// Returns the number whose bits a BPF program's usdt_arg() gave for a _Float16 (`size` 2 bytes), float (4) or double
/// (8). nullopt: another size.
[[nodiscard]] constexpr std::optional<double> float_from_bits(std::uint64_t bits, std::size_t size) noexcept {
  if (size == sizeof(std::uint16_t)) return double{half_from_bits(static_cast<std::uint16_t>(bits))};
  if (size == sizeof(float)) return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
  if (size == sizeof(double)) return std::bit_cast<double>(bits);
  return std::nullopt;
}

/// Returns the lowest `size` bytes (1 to 8) of `bits`, extended to 64 bits by their sign or by zeros.
[[nodiscard]] constexpr std::uint64_t cut(std::uint64_t bits, std::size_t size, bool is_signed) noexcept {
  const std::size_t unused = 64 - 8 * size;
  const std::uint64_t top = bits << unused;
  return is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(top) >> unused) : top >> unused;
}

}  // namespace v1
}  // namespace usdt
