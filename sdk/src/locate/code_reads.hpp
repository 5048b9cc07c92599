// SPDX-License-Identifier: BSD-2-Clause
// What a function's machine code does with what callers passed it in memory. Private to locate/.
//
// Compilers leave away what callers write to memory that the function, which they see too, does not read: members of
// objects that are passed by the address of a copy, of structs on the stack, and what references lead to. Debug
// information does not tell. What the function's code reads was written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/returned.hpp"
#include "locate/location.hpp"
#include "locate/moment.hpp"

namespace usdt::locate {

/// By byte of an object: it is read.
using ReadBytes = std::vector<bool>;

/// The place that has the address of an object when a function begins.
struct AddressAt {
  std::optional<unsigned> reg = {};         ///< DWARF number
  std::optional<std::uint64_t> stack = {};  ///< in a word so many bytes from the call frame address on
};

/// A word of an object that stands for other memory.
struct LibraryAddress {
  std::uint32_t offset = 0;
  std::uint32_t object = 0;  ///< the same of all in one object of a library
};

/// An object in memory, so far from where a register points.
struct FilledObject {
  unsigned base = 0;  ///< DWARF number
  std::int64_t displacement = 0;
  std::uint32_t size = 0;
  /// A byte that is read first was there before; not so in bit-fields, which are written by reading their word.
  bool reads_count = false;
  std::size_t calls = 0;  ///< how many calls of other functions there may be before it is filled
};

class CodeReads {
 public:
  /// `moment` outlives this. It is at the function's first instruction but for filled_behind().
  explicit CodeReads(const Moment& moment) : moment_(moment) {}

  /// Bytes read of an object passed by its address. An address in it (`addresses`) counts only if memory behind one
  /// with its `object` is read, too.
  [[nodiscard]] ReadBytes behind(const AddressAt& address, std::uint32_t size,
                                 std::span<const LibraryAddress> addresses) const;
  /// Bytes read of an object on the stack, `first` bytes from the call frame address on; all if its address is taken.
  [[nodiscard]] ReadBytes in_callers_room(std::uint64_t first, std::uint32_t size) const;
  /// Bytes of an object that the instruction at the moment writes, or one behind it before the next call, and none
  /// reads first; all where that is not known, and none of machines other than x86.
  [[nodiscard]] ReadBytes filled_behind(const FilledObject& object) const;
  /// The registers that the function's code is proven to leave a result in.
  [[nodiscard]] arch::ResultRegisters proven_results() const;

 private:
  const Moment& moment_;
};

}  // namespace usdt::locate
