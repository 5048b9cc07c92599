// SPDX-License-Identifier: BSD-2-Clause
// What a function's machine code does with what callers passed it in memory. Private to dwarf/.
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
#include "dwarf/location.hpp"
#include "dwarf/moment.hpp"

namespace usdt::dwarf {

/// By byte of an object: it is read.
using ReadBytes = std::vector<bool>;

/// Where the address of an object is when a function begins.
struct AddressAt {
  std::optional<unsigned> reg = {};         ///< DWARF number
  std::optional<std::uint64_t> stack = {};  ///< in a word so many bytes from the call frame address on
};

/// A word of an object that stands for other memory.
struct LibraryAddress {
  std::uint32_t offset = 0;
  std::uint32_t object = 0;  ///< the same of all in one object of a library
};

class CodeReads {
 public:
  /// `moment` is at the function's first instruction, and outlives this.
  explicit CodeReads(const Moment& moment) : moment_(moment) {}

  /// Those of an object that is passed by its address. `addresses` of it count only where what one of the same object
  /// leads to is read, too.
  [[nodiscard]] ReadBytes behind(const AddressAt& address, std::uint32_t size,
                                 std::span<const LibraryAddress> addresses) const;
  /// Those of an object on the stack, `first` bytes from the call frame address on; all where its address is taken.
  [[nodiscard]] ReadBytes in_callers_room(std::uint64_t first, std::uint32_t size) const;
  /// Whether the instruction at `begin`, or one behind it before `end`, writes to bytes at that sum, which counts from
  /// a register; true where that is not known.
  [[nodiscard]] bool writes_to(const Sum& sum, std::uint32_t size, VirtAddr begin, VirtAddr end) const;
  /// The registers that the function's code is proven to leave a result in.
  [[nodiscard]] arch::ResultRegisters proven_results() const;

 private:
  const Moment& moment_;
};

}  // namespace usdt::dwarf
