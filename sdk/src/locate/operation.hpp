// SPDX-License-Identifier: BSD-2-Clause
// Operations of DWARF expressions that have several encodings, read once for all who evaluate expressions.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>

namespace usdt::locate {

/// One operation, by what it means (DWARF 5, sections 2.5.1 and 2.6.1.1).
struct Operation {
  enum class Kind : std::uint8_t {
    constant,  ///< pushes `number`
    sum,       ///< pushes the content of register `reg` plus `number`
    reg,       ///< the value is in register `reg`
    load,      ///< pushes the `number` bytes of memory that the top of the stack is the address of
    other,     ///< another one: see its atom
  };
  Kind kind = Kind::other;
  std::uint64_t reg = 0;  ///< DWARF number
  std::uint64_t number = 0;
};

/// Returns the meaning of `op`. `word_size`: bytes of an address.
[[nodiscard]] Operation operation_of(const Dwarf_Op& op, unsigned word_size) noexcept;

}  // namespace usdt::locate
