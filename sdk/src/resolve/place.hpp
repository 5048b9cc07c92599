// SPDX-License-Identifier: BSD-2-Clause
// Places of objects that members are taken from, and how a number in one is read. Private to resolve/.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "arch/arch.hpp"
#include "usdt/location.hpp"

namespace usdt::resolve {

/// A number: what steps from a location lead to.
struct Number {
  Location location;
  std::vector<Step> steps = {};
};

/// At an address that registers tell.
struct InMemory {
  Memory at;
};
/// `offset` bytes behind what a pointer points to.
struct BehindPointer {
  Number pointer;
  std::uint64_t offset = 0;
  std::string pointer_text = {};  ///< the pointer as written, for messages
};
/// In registers and elsewhere, piece by piece; `offset` bytes into the whole.
struct InPieces {
  std::vector<Piece> pieces;
  std::uint64_t offset = 0;
};

/// Says where an object is. A Number is all there is of one that is no object.
using Place = std::variant<Number, InMemory, BehindPointer, InPieces>;

/// Some bits of a number, or how it is stored.
struct BitRange {
  std::uint8_t shift = 0;  ///< as MemberInfo::shift
  std::uint8_t bits = 0;   ///< 0: all
  bool swapped = false;    ///< TypeInfo::swapped
};

/// Whether its `size` bytes are side by side in memory.
[[nodiscard]] bool is_in_memory(const Place& place, std::uint64_t size);
/// The place `offset` bytes further on. A Number has nothing there.
[[nodiscard]] Place moved(Place place, std::uint64_t offset);
/// A number of a type of so many bytes that is there, or those bits of it. `text`: how it is written, for messages.
[[nodiscard]] Number number_at(const Place& place, std::uint32_t type_size, BitRange range, const std::string& text,
                               const arch::Arch& arch);
/// The address of the place, where it has one.
[[nodiscard]] Number address_of(const Place& place, const std::string& text, const arch::Arch& arch);

}  // namespace usdt::resolve
