// SPDX-License-Identifier: BSD-2-Clause
// Memory and general registers that single instructions of x86 read and write.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "arch/instructions.hpp"

namespace usdt::arch {

/// An access to memory at base + displacement, or from there on. Registers by DWARF number.
struct Access {
  std::uint8_t base = 0;
  std::int64_t displacement = 0;
  std::uint32_t size = 0;  ///< bytes
  bool reads = false;
  bool writes = false;   ///< neither: its address is computed (lea)
  bool indexed = false;  ///< another register is added to the address
};

/// The effects of one instruction. Accesses whose address has no base register are left out.
struct Effects {
  Instruction code;
  std::array<std::optional<Access>, 4> accesses = {};
  std::uint32_t changed = 0;  ///< general registers that it writes, a bit each, by DWARF number; of calls none
  /// The register that becomes what another one is, plus a displacement; the one that is loaded with a whole word of
  /// memory, accesses[0]; and the one that is stored there.
  struct Copy {
    std::uint8_t to = 0;
    std::uint8_t from = 0;
    std::int64_t displacement = 0;
  };
  std::optional<Copy> copies = {};
  std::optional<std::uint8_t> loads = {};
  std::optional<std::uint8_t> stores = {};
  std::int64_t stack = 0;  ///< what push and pop add to the stack pointer
};

/// The effects of the instruction that `bytes` begin with; nothing where they begin with none, and of machines other
/// than x86.
[[nodiscard]] std::optional<Effects> effects_of(Machine machine, std::span<const std::uint8_t> bytes) noexcept;

/// The registers that a function keeps for its caller, a bit each, by DWARF number.
[[nodiscard]] std::uint32_t kept_by_calls(Machine machine) noexcept;

}  // namespace usdt::arch
