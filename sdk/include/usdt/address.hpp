// SPDX-License-Identifier: BSD-2-Clause
// Numbers that belong to one address space each: FileOffset, VirtAddr and ProcessAddr do not convert into each other,
// so that an offset cannot be attached in the place of an address. `usdt::FileOffset(0x1f40).value` is the number.
// Threads: plain values.
#pragma once

#include <compare>
#include <cstdint>

namespace usdt {
inline namespace v1 {

/// Holds a 64-bit number of one address space, which does not turn into that of another one by accident.
template <class Space>
struct Address {
  std::uint64_t value = 0;

  constexpr Address() = default;
  /// Makes an address of a number. It is explicit, so that the code names the space where the number comes from.
  constexpr explicit Address(std::uint64_t v) noexcept : value(v) {}
  friend constexpr auto operator<=>(Address, Address) = default;
  /// Returns the distance `b - a` in bytes, modulo 2^64.
  friend constexpr std::int64_t distance(Address a, Address b) noexcept {
    return static_cast<std::int64_t>(b.value - a.value);
  }
  /// Returns the address `bytes` further on, modulo 2^64.
  constexpr Address operator+(std::uint64_t bytes) const noexcept { return Address(value + bytes); }
};

/// An offset in bytes from the start of a file: what the kernel's uprobe interfaces take.
using FileOffset = Address<struct FileOffsetSpace>;
/// An address as linked, in the space of an ELF file's p_vaddr, sh_addr and st_value: what a note's words are.
using VirtAddr = Address<struct VirtAddrSpace>;
/// An address inside a running process: a VirtAddr plus the load bias.
using ProcessAddr = Address<struct ProcessAddrSpace>;

}  // namespace v1
}  // namespace usdt
