// SPDX-License-Identifier: BSD-2-Clause
// Places of bit-fields on little-endian machines.
#pragma once

#include <algorithm>
#include <cstdint>

namespace usdt {
inline namespace v1 {

/// Bytes from the start of the struct, and bits of the number there that are below the bit-field's.
struct BitPlace {
  std::uint64_t offset = 0;
  std::uint8_t shift = 0;
};

/// Returns where to read a bit-field whose first bit is bit `first` of a struct of `outer_size` bytes: a number of its
/// type's size that contains it and lies within the struct, aligned as compilers read it if that is possible.
[[nodiscard]] constexpr BitPlace bit_place(std::uint64_t first, std::uint64_t width, std::uint64_t type_size,
                                           std::uint64_t outer_size) noexcept {
  const std::uint64_t size = std::clamp<std::uint64_t>(type_size, 1, 8);
  const auto fits = [&](std::uint64_t offset) {
    return offset + size <= outer_size && first + width <= 8 * (offset + size) && 8 * offset <= first;
  };
  std::uint64_t offset = first / 8;
  if (fits(offset - offset % size)) {
    offset -= offset % size;
  } else if (size <= outer_size && fits(std::min(offset, outer_size - size))) {
    offset = std::min(offset, outer_size - size);
  }
  return {offset, static_cast<std::uint8_t>(first - 8 * offset)};
}

}  // namespace v1
}  // namespace usdt
