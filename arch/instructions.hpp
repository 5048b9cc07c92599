// SPDX-License-Identifier: BSD-2-Clause
// Boundaries, control flow and a few other properties of single instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "usdt/machine.hpp"

namespace usdt::arch {

/// Whether this build can tell instructions of `machine` apart: those of x86 by zydis, which a static build lacks.
[[nodiscard]] bool knows_instructions(Machine machine) noexcept;

/// The instruction that runs next.
enum class Flow : std::uint8_t {
  next,    ///< the one behind it
  branch,  ///< that one or another
  jump,    ///< another
  call,    ///< another, and when that returns the one behind it
  ret,     ///< the caller
};

struct Instruction {
  std::uint8_t size = 0;  ///< bytes; 0: there is none
  Flow flow = Flow::next;
  /// From its own start to the other one, where it says that itself.
  std::optional<std::int64_t> target = {};
  bool repeats = false;       ///< it runs once for each round (rep movs), or not at all
  bool calls_kernel = false;  ///< a system call
};

/// Decodes the instruction that `bytes` begin with; one of size 0 if they begin with none, or end within it. The
/// machine is one that knows_instructions() has.
[[nodiscard]] Instruction decode_instruction(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

/// Properties that tell the jump of a switch, which stays in its function, from a tail call.
struct SwitchJump {
  bool by_distance =
      false;  ///< it goes to a sum of two registers: a distance out of a table, and where that counts from
  std::optional<std::uint64_t> table = {};  ///< it goes to what a table at this address has
};

/// Examines the indirect jump that `bytes` end with. `starts`: offsets in `bytes` of the jump and of the instructions
/// before it.
[[nodiscard]] SwitchJump switch_jump(Machine machine, std::span<const std::uint8_t> bytes,
                                     std::span<const std::size_t> starts) noexcept;

/// Whether the return that `bytes` end with goes where the function says: an instruction before it pushed the address,
/// or wrote it over the one that a call left (retpolines). `starts`: as of switch_jump().
[[nodiscard]] bool returns_elsewhere(Machine machine, std::span<const std::uint8_t> bytes,
                                     std::span<const std::size_t> starts) noexcept;

/// Bytes of the instruction that `bytes` begin with; 0 where they begin with none, or end within it. The machine is one
/// that knows_instructions() has.
[[nodiscard]] std::uint8_t instruction_size(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

/// Whether a function is still as its caller left it behind the instruction that `bytes` begin with, and surely gets
/// there: all registers that a calling convention passes anything in, the stack pointer and all memory are what they
/// were, and no memory is read that might not be there. False where that is not known.
[[nodiscard]] bool keeps_arguments(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

/// Whether nothing but a return is ahead: nops, and then a return to where the call came from. False where `bytes` end
/// before that. The machine is one that knows_instructions() has.
[[nodiscard]] bool returns_at_once(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

/// Whether a call can return to right behind `bytes`: they end with one. No longer than that of any machine:
constexpr std::size_t kLongestCall = 8;
[[nodiscard]] bool ends_with_call(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

/// Whether `bytes` are where a signal handler returns to: they begin with the system call that ends a signal, as C
/// libraries and vDSOs have it (which debuggers go by, too), and nothing called it.
constexpr std::size_t kLongestSignalReturn = 9;
[[nodiscard]] bool returns_from_signal(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

}  // namespace usdt::arch
