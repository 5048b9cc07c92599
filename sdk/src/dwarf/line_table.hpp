// SPDX-License-Identifier: BSD-2-Clause
// The line table of one unit. Private to dwarf/.
#pragma once

#include <elfutils/libdw.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dwarf/function_info.hpp"
#include "usdt/address.hpp"

namespace usdt::dwarf {

/// A row of a line table.
struct LineRow {
  std::uint64_t address = 0;
  const char* file = nullptr;
  int line = 0;
  bool statement = false;
  bool end = false;
};
[[nodiscard]] LineRow row_of(Dwarf_Lines* lines, std::size_t index);
/// The number of the first row of `lines`, which are in the order of their addresses, at `address` or behind it.
[[nodiscard]] std::size_t first_row(Dwarf_Lines* lines, std::size_t count, std::uint64_t address);

/// The beginning of a function's body, as the line table shows it.
struct FunctionLines {
  std::optional<VirtAddr> prologue_end;  ///< that is said of a row (Clang)
  std::optional<VirtAddr> second;        ///< the second address that has a row; GCC gives the body's beginning one

  [[nodiscard]] std::optional<VirtAddr> body() const noexcept { return prologue_end ? prologue_end : second; }
};
[[nodiscard]] FunctionLines function_lines(Dwarf_Die function);

/// The line that `pc` is of, as debuggers have it; no file and 0: the line table of `unit` does not say.
[[nodiscard]] SourceLine line_at(Dwarf_Die unit, VirtAddr pc);

}  // namespace usdt::dwarf
