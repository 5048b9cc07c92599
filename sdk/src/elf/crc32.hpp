// SPDX-License-Identifier: BSD-2-Clause
// The CRC-32 of .gnu_debuglink, which is zlib's (GDB manual, "Debugging Information in Separate Files"). Runs of zero
// bytes are added without being looked at, so that the holes of a sparse file of terabytes cost nothing.
#pragma once

#include <cstdint>

#include "elf/file.hpp"

namespace usdt::elf {

class Crc32 {
 public:
  void add(ByteView bytes) noexcept;
  /// The same as add() of `count` zero bytes, fewer than 2^62, in time that grows with the logarithm of `count`.
  void add_zeros(std::uint64_t count) noexcept;
  [[nodiscard]] std::uint32_t value() const noexcept { return value_; }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace usdt::elf
