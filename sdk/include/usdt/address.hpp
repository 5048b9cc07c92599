// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <compare>
#include <cstdint>

namespace usdt {
inline namespace v1 {

/// A 64-bit number that belongs to one address space and does not turn into another by accident.
template <class Space>
struct Address {
  std::uint64_t value = 0;

  constexpr Address() = default;
  /// Never implicit: which space a number belongs to is said where it comes from.
  constexpr explicit Address(std::uint64_t v) noexcept : value(v) {}
  friend constexpr auto operator<=>(Address, Address) = default;
  /// Byte distance `b - a`, modulo 2^64.
  friend constexpr std::int64_t distance(Address a, Address b) noexcept {
    return static_cast<std::int64_t>(b.value - a.value);
  }
  /// `bytes` further on, modulo 2^64.
  constexpr Address operator+(std::uint64_t bytes) const noexcept { return Address(value + bytes); }
};

/// Byte offset from the start of a file: what the kernel's uprobe interfaces take.
using FileOffset = Address<struct FileOffsetSpace>;
/// Address as linked, the p_vaddr/sh_addr/st_value space of an ELF file: what a note's words are.
using VirtAddr = Address<struct VirtAddrSpace>;
/// Address inside a running process: VirtAddr plus the load bias.
using ProcessAddr = Address<struct ProcessAddrSpace>;

}  // namespace v1
}  // namespace usdt
