// SPDX-License-Identifier: BSD-2-Clause
// The effect of an instruction on the stack pointer, and its reads from the stack.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "usdt/machine.hpp"

namespace usdt::arch {

struct StackUse {
  std::int64_t grows = 0;              ///< by so many bytes the stack pointer falls
  bool sets_frame = false;             ///< the frame pointer becomes the stack pointer
  std::int64_t leaves_frame = 0;       ///< the stack pointer becomes the frame pointer, and so many bytes more
  bool aligns_stack = false;           ///< the stack pointer falls by nobody knows how much
  bool sets_stack = false;             ///< it becomes something else
  bool reads_return_register = false;  ///< arm64: x30, riscv64: ra, but to save it on the stack
  std::optional<std::int64_t> reads_above_stack = {};  ///< it reads memory so many bytes above the stack pointer
  std::optional<std::int64_t> reads_above_frame = {};  ///< the same of the frame pointer
};

/// Examines the instruction that `bytes` begin with. The machine is one that knows_instructions() has.
[[nodiscard]] StackUse stack_use(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

}  // namespace usdt::arch
