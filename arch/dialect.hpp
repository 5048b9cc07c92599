// SPDX-License-Identifier: BSD-2-Clause
// How notes write operands for a machine: the grammar of parsers/ reads the text, a Dialect says which addresses the
// machine has, and writes locations as notes would.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "arch/arch.hpp"
#include "usdt/location.hpp"
#include "usdt/operand.hpp"

namespace usdt::arch {

/// The registers of an operand's address; nullptr: it has none.
struct AddressRegisters {
  const Register* base = nullptr;
  const Register* index = nullptr;
};

/// Why an operand is no address of its machine.
struct AddressRefusal {
  std::string reason;
  std::string_view token = {};  ///< the word of the operand that it is about; empty: all of it
};

struct Dialect {
  std::string_view constant_prefix;  ///< "$"
  /// Writes an address.
  std::string (*memory_text)(const Arch& arch, const Memory& memory);
  /// Checks an operand by the machine's rules, and sets what they say of `memory`: its origin, width and wrapping.
  std::optional<AddressRefusal> (*check_address)(const Arch& arch, const MemOperand& operand, AddressRegisters regs,
                                                 Memory& memory);
};

extern const Dialect kX86Dialect;      ///< AT&T's
extern const Dialect kAarch64Dialect;  ///< arm's
extern const Dialect kRiscv64Dialect;

}  // namespace usdt::arch
