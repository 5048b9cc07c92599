// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <bit>

#include "arch/dialect.hpp"

namespace usdt::arch {
namespace {

std::string memory_text(const Arch& arch, const Memory& memory) {
  const auto displacement = static_cast<std::int64_t>(memory.displacement);
  const std::string_view base = memory.base == RegisterId::none ? "" : arch.reg(memory.base).name;
  if (memory.index == RegisterId::none) return fmt::format("[{}, {}]", base, displacement);
  static constexpr std::string_view kExtends[] = {"lsl", "uxtw", "sxtw"};
  return fmt::format("[{}, {}, {} {}]", base, arch.reg(memory.index).name,
                     kExtends[static_cast<std::size_t>(memory.index_width)], memory.shift);
}

/// An index that is the zero register adds nothing.
std::optional<AddressRefusal> check_index(const MemOperand& operand, const Register& index, Memory& memory) {
  if ((index.reg_class != RegClass::gpr && index.reg_class != RegClass::zero) || index.canon == "sp")
    return AddressRefusal{fmt::format("register {} cannot be an index", index.name), index.name};
  const bool extends_word = operand.extend == Extend::uxtw || operand.extend == Extend::sxtw;
  if (index.bits == 32 && !extends_word)
    return AddressRefusal{fmt::format("32-bit index {} without uxtw or sxtw", index.name), index.name};
  if (index.bits == 64 && extends_word)
    return AddressRefusal{fmt::format("64-bit index {} with a 32-bit extension", index.name), index.name};
  if (!std::has_single_bit(operand.scale) || operand.scale > 16)
    return AddressRefusal{fmt::format("index shift of {} is more than 4", operand.amount)};
  if (operand.extend == Extend::uxtw) memory.index_width = IndexWidth::low32;
  if (operand.extend == Extend::sxtw) memory.index_width = IndexWidth::low32_signed;
  return std::nullopt;
}

/// Arm ARM section C1.3.3.
std::optional<AddressRefusal> check_address(const Arch&, const MemOperand& operand, AddressRegisters regs,
                                            Memory& memory) {
  const auto addresses = [](const Register& reg) { return reg.reg_class == RegClass::gpr && reg.bits == 64; };
  if (regs.base != nullptr && !addresses(*regs.base))
    return AddressRefusal{fmt::format("register {} cannot be a base: only x0..x30 and sp can", regs.base->name),
                          regs.base->name};
  if (regs.base != nullptr && operand.symbol && operand.symbol->reloc.empty())
    return AddressRefusal{fmt::format("symbol '{}' beside a base register without :lo12:", operand.symbol->name),
                          operand.symbol->name};
  return regs.index == nullptr ? std::nullopt : check_index(operand, *regs.index, memory);
}

}  // namespace

constinit const Dialect kAarch64Dialect{
    .constant_prefix = "", .memory_text = memory_text, .check_address = check_address};

}  // namespace usdt::arch
