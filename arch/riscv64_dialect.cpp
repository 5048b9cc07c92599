// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include "arch/dialect.hpp"

namespace usdt::arch {
namespace {

std::string memory_text(const Arch& arch, const Memory& memory) {
  const auto displacement = static_cast<std::int64_t>(memory.displacement);
  return fmt::format("{}({})", displacement, memory.base == RegisterId::none ? "zero" : arch.reg(memory.base).name);
}

/// Loads and stores have a base and a displacement. A base that is the zero register adds nothing.
std::optional<AddressRefusal> check_address(const Arch&, const MemOperand& operand, AddressRegisters regs, Memory&) {
  const bool addresses = regs.base != nullptr && regs.base->reg_class != RegClass::fp;
  if (!addresses)
    return AddressRefusal{fmt::format("register {} cannot be a base: only x0 to x31 can", operand.base), operand.base};
  return std::nullopt;
}

}  // namespace

constinit const Dialect kRiscv64Dialect{
    .constant_prefix = "", .memory_text = memory_text, .check_address = check_address};

}  // namespace usdt::arch
