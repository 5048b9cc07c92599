// SPDX-License-Identifier: BSD-2-Clause
#include "elf/crc32.hpp"

#include <zlib.h>

namespace usdt::elf {

void Crc32::add(ByteView bytes) noexcept {
  value_ = static_cast<std::uint32_t>(::crc32_z(value_, bytes.data(), bytes.size()));
}

/// `zeros` is the CRC of `length` zero bytes, each time twice as many.
void Crc32::add_zeros(std::uint64_t count) noexcept {
  const Bytef zero = 0;
  uLong zeros = ::crc32_z(0, &zero, 1);
  for (z_off64_t length = 1; count != 0; count >>= 1, length *= 2) {
    if ((count & 1) != 0) value_ = static_cast<std::uint32_t>(::crc32_combine64(value_, zeros, length));
    zeros = ::crc32_combine64(zeros, zeros, length);
  }
}

}  // namespace usdt::elf
