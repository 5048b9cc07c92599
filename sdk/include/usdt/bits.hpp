// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace usdt {
inline namespace v1 {

/// What a BPF program's usdt_arg() gave for a float (`size` 4) or double (8), as a number: BPF has no floating point,
/// so that programs hand on the bits. nullopt for other sizes.
[[nodiscard]] constexpr std::optional<double> float_from_bits(std::uint64_t bits, std::size_t size) noexcept {
  if (size == sizeof(float)) return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
  if (size == sizeof(double)) return std::bit_cast<double>(bits);
  return std::nullopt;
}

/// The lowest `size` bytes (1 to 8) of `bits`, extended to 64 bits by their sign or by zeros.
[[nodiscard]] constexpr std::uint64_t cut(std::uint64_t bits, std::size_t size, bool is_signed) noexcept {
  const std::size_t unused = 64 - 8 * size;
  const std::uint64_t top = bits << unused;
  return is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(top) >> unused) : top >> unused;
}

}  // namespace v1
}  // namespace usdt
