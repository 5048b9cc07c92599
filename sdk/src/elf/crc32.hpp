// SPDX-License-Identifier: BSD-2-Clause
// The CRC-32 of .gnu_debuglink: that of ISO 3309 and zlib, polynomial 0x04c11db7, reflected (GDB manual, "Debugging
// Information in Separate Files"). Runs of zero bytes are added without being looked at, so that the holes of a sparse
// file of terabytes cost nothing; boost::crc has no such operation.
#pragma once

#include <cstdint>

#include "elf/file.hpp"

namespace usdt::elf {

class Crc32 {
 public:
  void add(ByteView bytes) noexcept;
  /// The same as add() of `count` zero bytes, in time that grows with the logarithm of `count`.
  void add_zeros(std::uint64_t count) noexcept;
  [[nodiscard]] std::uint32_t value() const noexcept { return ~register_; }

 private:
  std::uint32_t register_ = 0xffffffff;
};

}  // namespace usdt::elf
