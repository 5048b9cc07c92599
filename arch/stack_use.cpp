// SPDX-License-Identifier: BSD-2-Clause
#include "arch/stack_use.hpp"

#include <array>

#ifndef USDT_NO_ZYDIS
#include <Zydis/Decoder.h>
#endif

#include "arch/instruction_sets.hpp"
#include "arch/riscv64.hpp"

namespace usdt::arch {
namespace {

#ifdef USDT_NO_ZYDIS

StackUse stack_use_x86(bool, std::span<const std::uint8_t>) noexcept { return {}; }

#else

/// One x86 instruction with its operands.
class X86 {
 public:
  X86(bool is64, std::span<const std::uint8_t> bytes)
  noexcept
      : stack_(is64 ? ZYDIS_REGISTER_RSP : ZYDIS_REGISTER_ESP), frame_(is64 ? ZYDIS_REGISTER_RBP : ZYDIS_REGISTER_EBP) {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, is64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
                     is64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
    known_ = ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &code_, operands_.data()));
    word_ = is64 ? 8 : 4;
  }

  [[nodiscard]] StackUse use() const noexcept;

 private:
  void look_at(const ZydisDecodedOperand& operand, StackUse& use) const noexcept;
  void move(StackUse& use) const noexcept;
  [[nodiscard]] bool is_register(std::size_t operand, ZydisRegister reg) const noexcept {
    return operands_[operand].type == ZYDIS_OPERAND_TYPE_REGISTER && operands_[operand].reg.value == reg;
  }

  ZydisRegister stack_;
  ZydisRegister frame_;
  bool known_ = false;
  std::int64_t word_ = 0;
  ZydisDecodedInstruction code_{};
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands_{};
};

void X86::look_at(const ZydisDecodedOperand& operand, StackUse& use) const noexcept {
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type != ZYDIS_MEMOP_TYPE_MEM ||
      operand.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT || operand.mem.index != ZYDIS_REGISTER_NONE ||
      (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) == 0)
    return;
  if (operand.mem.base == stack_) use.reads_above_stack = operand.mem.disp.value;
  if (operand.mem.base == frame_) use.reads_above_frame = operand.mem.disp.value;
}

void X86::move(StackUse& use) const noexcept {
  const std::int64_t operand_size = code_.operand_width / 8;
  switch (code_.mnemonic) {
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_RET:
      return;
    case ZYDIS_MNEMONIC_LEAVE:
      use.leaves_frame = word_;
      return;
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_ADD:
      if (operands_[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) break;
      use.grows = code_.mnemonic == ZYDIS_MNEMONIC_SUB ? operands_[1].imm.value.s : -operands_[1].imm.value.s;
      return;
    case ZYDIS_MNEMONIC_AND:
      use.aligns_stack = true;
      return;
    case ZYDIS_MNEMONIC_LEA:
      if (operands_[1].mem.index != ZYDIS_REGISTER_NONE) break;
      if (operands_[1].mem.base == stack_) {
        use.grows = -operands_[1].mem.disp.value;
        return;
      }
      use.aligns_stack = operands_[1].mem.base == frame_;
      if (use.aligns_stack) return;
      break;
    case ZYDIS_MNEMONIC_MOV:
      use.aligns_stack = is_register(1, frame_);
      if (use.aligns_stack) return;
      break;
    default:
      if (code_.meta.category == ZYDIS_CATEGORY_PUSH) {
        use.grows = operand_size;
        return;
      }
      if (code_.meta.category == ZYDIS_CATEGORY_POP && !is_register(0, stack_)) {
        use.grows = -operand_size;
        return;
      }
  }
  use.sets_stack = true;
}

StackUse X86::use() const noexcept {
  StackUse use;
  if (!known_) return use;
  bool moves = false;
  for (std::size_t i = 0; i < code_.operand_count; ++i) {
    look_at(operands_[i], use);
    moves |= is_register(i, stack_) && (operands_[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  }
  use.sets_frame = code_.mnemonic == ZYDIS_MNEMONIC_MOV && is_register(0, frame_) && is_register(1, stack_);
  if (moves) move(use);
  return use;
}

StackUse stack_use_x86(bool is64, std::span<const std::uint8_t> bytes) noexcept { return X86(is64, bytes).use(); }

#endif

/// Arm Architecture Reference Manual, C4.1: "stp" and "str" of x30 anywhere but on the stack, "mov" from it, and "mov"
/// and "add" to the stack pointer from another register than the frame pointer.
StackUse stack_use_arm64(std::span<const std::uint8_t> bytes) noexcept {
  StackUse use;
  if (bytes.size() < 4) return use;
  const std::uint32_t word = bytes[0] | bytes[1] << 8U | bytes[2] << 16U | std::uint32_t{bytes[3]} << 24U;
  constexpr std::uint32_t link = 30;
  constexpr std::uint32_t frame = 29;
  constexpr std::uint32_t stack = 31;
  const std::uint32_t first = word & 31;
  const std::uint32_t base = word >> 5 & 31;
  const std::uint32_t second = word >> 10 & 31;
  const bool pair = (word & 0xfe400000) == 0xa8000000;
  const bool one = (word & 0xffc00000) == 0xf9000000 || (word & 0xffe00000) == 0xf8000000;
  const bool moves = (word & 0xffe0ffe0) == 0xaa0003e0;
  use.reads_return_register = (pair && base != stack && (first == link || second == link)) ||
                              (one && base != stack && first == link) || (moves && (word >> 16 & 31) == link);
  const bool adds = (word & 0xff800000) == 0x91000000;
  use.sets_stack = adds && first == stack && base != stack && base != frame;
  return use;
}

}  // namespace

StackUse stack_use(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  return by_instructions(
      machine, [&](bool is64) { return stack_use_x86(is64, bytes); }, [&] { return stack_use_arm64(bytes); },
      [&] { return riscv64::stack_use(bytes); });
}

}  // namespace usdt::arch
