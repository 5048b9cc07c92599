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

/// What the language of a function has on the stack.
enum class StackVariables : std::uint8_t {
  may_be_volatile,   ///< C, C++
  are_not_volatile,  ///< Rust: what is read from there is wanted
};

/// Proves which of them some RET instruction of `code` hands to the caller: one is set, on each way from there nothing
/// reads it before it is set anew, and some way leads to a RET. Compilers delete what sets a register for nobody, so it
/// is set for the caller. What is only read from memory counts for nothing, since it may be volatile. False: it was not
/// proven. Of x86-64 only.
[[nodiscard]] ResultRegisters proven_results(Machine machine, std::span<const std::uint8_t> code,
                                             StackVariables variables);

}  // namespace usdt::arch
