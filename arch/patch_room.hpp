// SPDX-License-Identifier: BSD-2-Clause
// The room for patches at the beginning of a function.
#pragma once

#include <cstdint>
#include <span>

#include "usdt/machine.hpp"

namespace usdt::arch {

inline constexpr std::uint8_t kLongestPatchRoom = 11;

/// Bytes of the room that `bytes`, the beginning of a function or what is behind its landing pad, begin with: a jump
/// over a nop of 9 bytes, which LLVM's XRay replaces by a call that keeps all registers (-fxray-instrument; x86-64).
/// Else 0.
[[nodiscard]] std::uint8_t patch_room(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

}  // namespace usdt::arch
