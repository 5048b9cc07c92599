// SPDX-License-Identifier: BSD-2-Clause
// Shared by the sources of riscv64: RV64 code with compressed instructions, and the ABI lp64d. Private to arch/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "arch/instructions.hpp"
#include "arch/stack_use.hpp"

namespace usdt::arch::riscv64 {

/// Numbers of registers, in instructions and in debug information.
enum Number : std::uint32_t { kZero = 0, kRa = 1, kSp = 2, kT1 = 6, kS0 = 8, kA0 = 10, kA7 = 17, kT4 = 29, kT6 = 31 };

/// The bytes of one instruction as a number: 2 where it is compressed, else 4. Nothing: `bytes` end within it, or it is
/// longer than any that processors have.
struct Code {
  std::uint32_t word;
  std::uint8_t size;

  /// The bits of `mask` are `value`, in an instruction of `size` bytes: `value` says how many these are, too.
  [[nodiscard]] constexpr bool is(std::uint32_t mask, std::uint32_t value) const noexcept {
    return (word & mask) == value && ((value & 3U) == 3U) == (size == 4);
  }
  /// The register that an instruction of either size names in the field that begins at bit `from`.
  [[nodiscard]] constexpr std::uint32_t reg(unsigned from) const noexcept { return word >> from & 31U; }
};
[[nodiscard]] std::optional<Code> code_at(std::span<const std::uint8_t> bytes) noexcept;

// Like the functions of these names in instructions.hpp, stack_use.hpp, stack_switch.hpp and arch.hpp.
[[nodiscard]] Instruction decode(std::span<const std::uint8_t> bytes) noexcept;
[[nodiscard]] bool keeps_arguments(std::span<const std::uint8_t> bytes) noexcept;
[[nodiscard]] bool is_nop(std::span<const std::uint8_t> bytes) noexcept;
[[nodiscard]] SwitchJump switch_jump(std::span<const std::uint8_t> bytes, std::span<const std::size_t> starts) noexcept;
[[nodiscard]] StackUse stack_use(std::span<const std::uint8_t> bytes) noexcept;
[[nodiscard]] bool may_switch_stacks(std::span<const std::uint8_t> code) noexcept;
[[nodiscard]] std::string_view uprobe_refusal(std::span<const std::uint8_t> bytes) noexcept;

/// Says where a pair of instructions leads, "auipc" and a jump from there, and whether it is a call: a distance of more
/// than 1 MiB takes two. Nothing: `bytes` do not begin with such a pair.
struct FarJump {
  std::int64_t target;
  bool is_call;
};
[[nodiscard]] std::optional<FarJump> far_jump(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace usdt::arch::riscv64
