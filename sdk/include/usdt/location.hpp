// SPDX-License-Identifier: BSD-2-Clause
// The place of a value while its site is hit: Location is a constant, a register, memory, a slot, or unreadable with
// the reason, and Step leads on from there to members and through pointers. Arg (arg.hpp) has one Location;
// location_text() (decode.hpp) shows it to people. Threads: plain values that own their strings.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace usdt {
inline namespace v1 {

/// Numbers a register under one of its names: the row of its machine's table, which has the whole register that it is a
/// part of, and which bits it is. register_info() (decode.hpp) shows it to people.
enum class RegisterId : std::uint16_t { none = 0xffff };

/// Holds the value itself, cut to its type's size and extended to 64 bits by its sign.
struct Constant {
  std::uint64_t bits = 0;
  friend bool operator==(const Constant&, const Constant&) = default;
};

/// Names the register whose lowest bytes are the value, as many bytes as the type has.
struct Register {
  RegisterId id = RegisterId::none;
  RegisterId high = RegisterId::none;  ///< i386: holds the upper 4 of 8 bytes
  friend bool operator==(const Register&, const Register&) = default;
};

/// Tells what an address counts from.
enum class Origin : std::uint8_t {
  zero,    ///< it is absolute
  file,    ///< it is an address as linked, and moves with the file
  site,    ///< the site's own address
  thread,  ///< the thread pointer: the base of the thread's segment
};
/// Tells how much of an index register counts.
enum class IndexWidth : std::uint8_t { whole, low32, low32_signed };

/// Holds an address: origin + base + (index << shift) + displacement. The value's bytes are there, or with `is_value`
/// the address itself is the value.
struct Memory {
  std::uint64_t displacement = 0;  ///< in two's complement
  RegisterId base = RegisterId::none;
  RegisterId index = RegisterId::none;
  std::uint8_t shift = 0;  ///< log2 of the index's scale
  IndexWidth index_width = IndexWidth::whole;
  Origin origin = Origin::zero;
  bool wraps_at_32_bits = false;  ///< the address is that sum modulo 2^32
  bool is_value = false;          ///< nothing is read: the address is the value
  friend bool operator==(const Memory&, const Memory&) = default;
};

/// Numbers one of the 8-byte slots in which the kernel hands arguments to trampolines and raw tracepoints.
struct Slot {
  std::uint8_t number = 0;  ///< USDT_SLOT_RESULT: the return value's
  friend bool operator==(const Slot&, const Slot&) = default;
};

/// Says why the value cannot be read at a hit. The arguments beside it are not affected.
struct Unreadable {
  std::string reason;        ///< lower case, names the trouble
  std::uint32_t column = 0;  ///< zero-based, in the site's whole argument text
  friend bool operator==(const Unreadable&, const Unreadable&) = default;
};

/// Says where a value is while its site is hit, whatever the source that told it.
using Location = std::variant<Constant, Register, Memory, Slot, Unreadable>;

/// Describes one step from a value to what it leads to: through a pointer, into a bit-field. Its fields mean what those
/// of USDT_ARG_STEP do (usdt/bpf/spec.h).
struct Step {
  std::uint64_t displacement = 0;  ///< bytes added to the value so far, in two's complement
  std::uint8_t size = 0;           ///< bytes that are read at the sum: 1, 2, 4, 8; 0: the sum is the value
  std::uint8_t shift = 0;          ///< bits of that to drop
  std::uint8_t bits = 0;           ///< bits then to keep, of a bit-field; 0: all
  /// How many of the lowest bytes of what was read, or of the sum, are turned around first, and count alone: 2, 4, 8,
  /// for numbers in memory whose byte order is not the machine's; 0: none.
  std::uint8_t swapped = 0;
  std::string if_null = {};    ///< a text for when the value so far is 0: "req is null"
  std::string if_unread = {};  ///< a text for a failed read: "req->peer: memory could not be read"
  friend bool operator==(const Step&, const Step&) = default;
};

/// Says where some of a value's bytes are.
struct Piece {
  std::uint32_t offset = 0;  ///< in the value
  std::uint32_t size = 0;    ///< bytes
  Location location;         ///< of these bytes, read as an integer of `size` bytes
  std::uint8_t dropped = 0;  ///< of a register: bytes below these, of something else
};

}  // namespace v1
}  // namespace usdt
