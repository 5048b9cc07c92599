// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace usdt {

/// What a BPF program's usdt_arg() gave for a float (`size` 4) or double (8), as a number: BPF has no floating point,
/// so that programs hand on the bits. nullopt for other sizes.
[[nodiscard]] constexpr std::optional<double> float_from_bits(std::uint64_t bits, std::size_t size) noexcept {
  if (size == sizeof(float)) return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
  if (size == sizeof(double)) return std::bit_cast<double>(bits);
  return std::nullopt;
}

}  // namespace usdt
