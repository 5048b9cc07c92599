// SPDX-License-Identifier: BSD-2-Clause
// DWARF expressions, worked out as far as they can be before anything runs: to registers and sums of them, which is
// what a Location can say. Private to locate/.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "arch/arch.hpp"
#include "usdt/location.hpp"

namespace usdt::locate {

/// The base that an address counts from besides registers.
enum class Anchor : std::uint8_t {
  none,
  cfa,    ///< the call frame address: the stack pointer before the call
  frame,  ///< a register that becomes the frame's base by the function's prologue (Clang)
};

/// A number that is known but for registers: anchor + base + (index << shift) + displacement. Registers by DWARF
/// number.
struct Sum {
  Anchor anchor = Anchor::none;
  bool file = false;  ///< moves with the file
  std::optional<unsigned> base;
  std::optional<unsigned> index;
  std::uint8_t shift = 0;
  std::uint64_t displacement = 0;

  [[nodiscard]] bool is_constant() const noexcept { return anchor == Anchor::none && !file && !base && !index; }
  /// Exactly one register, as it is.
  [[nodiscard]] bool is_register() const noexcept {
    return anchor == Anchor::none && !file && base && !index && displacement == 0;
  }
};

/// A sum, or what is in memory there, of which `width` bytes count (0: all), behind the lowest `dropped` ones.
struct Value {
  Sum sum;
  bool loaded = false;
  std::uint8_t width = 0;
  bool is_signed = false;  ///< extended by its sign from `width`
  bool bit = false;        ///< of `width` 1, only the lowest bit counts
  std::uint8_t dropped = 0;
};

/// The places that DWARF gives to values.
struct InRegister {
  unsigned number = 0;
};
struct AtAddress {
  Value address;
};
struct IsValue {
  Value value;
};
struct IsBytes {
  std::vector<std::uint8_t> bytes;
};
struct Nowhere {
  std::string reason;
};
using Where = std::variant<Nowhere, InRegister, AtAddress, IsValue, IsBytes>;

struct WherePiece {
  std::uint64_t size = 0;  ///< bytes; 0: the whole
  Where where;
};

/// The surroundings that an expression may refer to.
struct ExpressionContext {
  const arch::Arch& arch;
  Dwarf_Attribute* attribute = nullptr;  ///< that it is of
  bool at_entry = false;                 ///< the code is at the first instruction of the function whose frame it has
  /// The sum that DW_OP_fbreg counts from, or the reason why there is none.
  std::function<std::variant<Sum, std::string>()> frame_base;
};

/// One piece, which is the whole, or several.
[[nodiscard]] std::vector<WherePiece> evaluate(std::span<const Dwarf_Op> expression, const ExpressionContext& context);

}  // namespace usdt::locate
