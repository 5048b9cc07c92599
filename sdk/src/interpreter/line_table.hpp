// SPDX-License-Identifier: BSD-2-Clause
// Lines of Python's instructions, as code objects have them since CPython 3.11 (co_linetable). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace usdt::interpreter {

/// Returns the line of the instruction that begins `offset` bytes into the code; 0: the table does not tell. The table
/// is a row of entries: a byte with the highest bit set, which says what kind it is and how many instructions it is
/// for, and bytes without that bit, which begin with the difference to the line of the entry before.
[[nodiscard]] std::uint32_t line_of(std::span<const std::byte> table, std::uint32_t first_line, std::uint32_t offset);

}  // namespace usdt::interpreter
