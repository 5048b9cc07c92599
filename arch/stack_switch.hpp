// SPDX-License-Identifier: BSD-2-Clause
// Code that goes on with another stack.
#pragma once

#include <cstdint>
#include <span>

#include "usdt/machine.hpp"

namespace usdt::arch {

/// Returns whether some bytes of `code` may be an instruction that makes the stack pointer what a function was given,
/// or what is in memory where such a value points to: how programs change stacks. Frame pointers do not count, by which
/// compilers free arrays of variable length. False for i386, whose code is not looked at.
[[nodiscard]] bool may_switch_stacks(Machine machine, std::span<const std::uint8_t> code) noexcept;

}  // namespace usdt::arch
