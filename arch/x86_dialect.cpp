// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <bit>

#include "arch/dialect.hpp"

namespace usdt::arch {
namespace {

std::string memory_text(const Arch& arch, const Memory& memory) {
  std::string text = memory.origin == Origin::thread ? fmt::format("%{}:", arch.thread_segment) : "";
  text += fmt::format("{}", static_cast<std::int64_t>(memory.displacement));
  const bool file = memory.origin == Origin::file || memory.origin == Origin::site;
  if (memory.base == RegisterId::none && memory.index == RegisterId::none) return text + (file ? "(%rip)" : "");
  text += memory.base == RegisterId::none ? "(" : fmt::format("(%{}", arch.reg(memory.base).name);
  if (memory.index != RegisterId::none) text += fmt::format(",%{},{}", arch.reg(memory.index).name, 1U << memory.shift);
  return text + ")";
}

/// Intel SDM volume 1, section 3.7.5: the registers of an address, and its width.
std::optional<AddressRefusal> check_registers(const Arch& arch, AddressRegisters regs, Memory& memory) {
  const unsigned widest = 8U * arch.word_size;
  for (const Register* reg : {regs.base, regs.index}) {
    if (reg == nullptr) continue;
    const bool addressing =
        reg->reg_class == RegClass::gpr || (reg == regs.base && arch.addresses_by_ip && reg->reg_class == RegClass::ip);
    if (!addressing) return AddressRefusal{fmt::format("register {} cannot address memory", reg->name), reg->name};
    if (reg->bits != 32 && reg->bits != widest)
      return AddressRefusal{fmt::format("{}-bit register {} cannot address memory", reg->bits, reg->name), reg->name};
    memory.wraps_at_32_bits |= reg->bits == 32;
  }
  return std::nullopt;
}

std::optional<AddressRefusal> check_index(const Arch& arch, const MemOperand& operand, AddressRegisters regs) {
  if (regs.index->canon == arch.reg(arch.stack_pointer).name)
    return AddressRefusal{"the stack pointer cannot be an index", regs.index->name};
  if (regs.base != nullptr && regs.base->reg_class == RegClass::ip)
    return AddressRefusal{"an address relative to the instruction pointer has no index", regs.index->name};
  if (regs.base != nullptr && regs.base->bits != regs.index->bits)
    return AddressRefusal{fmt::format("base {} and index {} differ in width", regs.base->name, regs.index->name),
                          regs.index->name};
  if (!std::has_single_bit(operand.scale) || operand.scale > 8)
    return AddressRefusal{fmt::format("scale {} is not 1, 2, 4 or 8", operand.scale)};
  return std::nullopt;
}

std::optional<AddressRefusal> check_address(const Arch& arch, const MemOperand& operand, AddressRegisters regs,
                                            Memory& memory) {
  if (auto refusal = check_registers(arch, regs, memory)) return refusal;
  // Their sum would wrap before the base of the segment is added, which wraps_at_32_bits does not say.
  if (!arch.wraps_at_32_bits && !operand.segment.empty() && memory.wraps_at_32_bits)
    return AddressRefusal{fmt::format("32-bit address register in segment %{}", operand.segment), operand.segment};
  if (arch.wraps_at_32_bits) memory.wraps_at_32_bits = true;
  if (!operand.segment.empty()) memory.origin = Origin::thread;
  return regs.index == nullptr ? std::nullopt : check_index(arch, operand, regs);
}

}  // namespace

constinit const Dialect kX86Dialect{.constant_prefix = "$", .memory_text = memory_text, .check_address = check_address};

}  // namespace usdt::arch
