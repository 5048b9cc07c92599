// SPDX-License-Identifier: BSD-2-Clause
// Which registers a function's machine code leaves a result in.
#pragma once

#include <cstdint>
#include <span>

#include "usdt/machine.hpp"

namespace usdt::arch {

/// The two registers that results come in (rax and rdx).
struct ResultRegisters {
  bool low = false;
  bool high = false;
};

/// Says whether a function may read a variable on the stack although nobody needs its value.
enum class StackVariables : std::uint8_t {
  may_be_volatile,   ///< in C and C++: such a read proves nothing
  are_not_volatile,  ///< in Rust: compilers delete such a read
};

/// Proves which of them some RET instruction of `code` hands to the caller: one is set, on each way from there nothing
/// reads it before it is set anew, and some way leads to a RET. Compilers delete what sets a register for nobody, so it
/// is set for the caller. A value that is only read from other memory counts for nothing, since it may be volatile.
/// False: it was not proven. Knows x86-64 only.
[[nodiscard]] ResultRegisters proven_results(Machine machine, std::span<const std::uint8_t> code,
                                             StackVariables variables);

}  // namespace usdt::arch
