// SPDX-License-Identifier: BSD-2-Clause
// Where instructions begin and end.
#pragma once

#include <cstdint>
#include <span>

#include "usdt/machine.hpp"

namespace usdt::arch {

/// Whether this build can tell instructions of `machine` apart: those of x86 by zydis, which a static build lacks.
[[nodiscard]] bool knows_instructions(Machine machine) noexcept;

/// Bytes of the instruction that `bytes` begin with; 0 where they begin with none, or end within it. What machine
/// `bytes` are for is one that knows_instructions().
[[nodiscard]] std::uint8_t instruction_size(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

}  // namespace usdt::arch
