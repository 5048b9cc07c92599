// SPDX-License-Identifier: BSD-2-Clause
// Uses of a function's argument registers by its first instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/arch.hpp"

namespace usdt::arch {

/// Bytes of a function's frame that its first instructions store, from a register that still has what the caller left
/// in it or otherwise. (Pushes are none of them.)
struct Spill {
  std::int64_t at = 0;  ///< of the first byte, from the stack pointer at the function's first instruction
  std::uint32_t size = 0;
  RegisterId reg = RegisterId::none;  ///< whose lowest bytes they are; none: they are filled with something else
  bool from_memory = false;           ///< they are copied from where a register points, outside of the frame
};

/// Returns the spills in the code that runs in any case: up to the first jump, call, or instruction whose effect is not
/// followed. They are in the order of their stores. Empty for arm64, and for machines that knows_instructions() lacks.
[[nodiscard]] std::vector<Spill> first_spills(const Arch& arch, std::span<const std::uint8_t> code);

/// Registers whose values the code that runs in any case (as above) uses before it sets them: of those that programs
/// pass arguments in or keep for their callers, the general ones, and the upper half of the vector registers where they
/// are stored. Whoever saves a general register for the caller does not use it.
[[nodiscard]] std::vector<RegisterId> first_uses(const Arch& arch, std::span<const std::uint8_t> code);

}  // namespace usdt::arch
