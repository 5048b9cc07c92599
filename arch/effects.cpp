// SPDX-License-Identifier: BSD-2-Clause
#include "arch/effects.hpp"

#ifndef USDT_NO_ZYDIS
#include <Zydis/Decoder.h>
#endif

#include "arch/instruction_sets.hpp"

namespace usdt::arch {

#ifdef USDT_NO_ZYDIS

std::optional<Effects> effects_of(Machine, std::span<const std::uint8_t>) noexcept { return std::nullopt; }

#else

namespace {

/// DWARF numbers of the registers in the order of their encoding: ax, cx, dx, bx, sp, bp, si, di, r8 ... (System V ABI,
/// AMD64, figure 3.36; of i386 the numbers are those of the encoding).
constexpr std::array<std::uint8_t, 16> kDwarf64{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

std::optional<std::uint8_t> number_of(bool is64, ZydisRegister reg) noexcept {
  const ZydisMachineMode mode = is64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32;
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(mode, reg);
  const ZydisRegisterClass wanted = is64 ? ZYDIS_REGCLASS_GPR64 : ZYDIS_REGCLASS_GPR32;
  if (whole == ZYDIS_REGISTER_NONE || ZydisRegisterGetClass(whole) != wanted) return std::nullopt;
  const auto id = static_cast<std::size_t>(ZydisRegisterGetId(whole));
  if (id >= kDwarf64.size()) return std::nullopt;
  return is64 ? kDwarf64[id] : static_cast<std::uint8_t>(id);
}

bool is_whole(bool is64, const ZydisDecodedOperand& operand) noexcept {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER && operand.size == (is64 ? 64 : 32) &&
         number_of(is64, operand.reg.value);
}

std::optional<Access> access_of(bool is64, const ZydisDecodedOperand& operand) noexcept {
  const ZydisDecodedOperandMem& memory = operand.mem;
  const bool own_segment = memory.segment != ZYDIS_REGISTER_FS && memory.segment != ZYDIS_REGISTER_GS;
  const auto base = number_of(is64, memory.base);
  if (!own_segment || !base) return std::nullopt;
  const bool is_address = memory.type == ZYDIS_MEMOP_TYPE_AGEN;
  return Access{.base = *base,
                .displacement = memory.disp.has_displacement ? memory.disp.value : 0,
                .size = operand.size / 8U,
                .reads = !is_address && (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0,
                .writes = !is_address && (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0,
                .indexed = memory.index != ZYDIS_REGISTER_NONE};
}

/// "mov reg, reg", "add reg, n", "lea reg, [reg + n]", "mov reg, [...]", "mov [...], reg", of whole registers.
void add_moves(bool is64, ZydisMnemonic mnemonic, std::span<const ZydisDecodedOperand> operands, Effects& effects) {
  if (operands.size() < 2) return;
  if (mnemonic == ZYDIS_MNEMONIC_MOV && operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY && is_whole(is64, operands[1]))
    effects.stores = number_of(is64, operands[1].reg.value);
  if (!is_whole(is64, operands[0])) return;
  const std::uint8_t to = *number_of(is64, operands[0].reg.value);
  if (mnemonic == ZYDIS_MNEMONIC_MOV && is_whole(is64, operands[1]))
    effects.copies = {.to = to, .from = *number_of(is64, operands[1].reg.value), .displacement = 0};
  const bool adds = mnemonic == ZYDIS_MNEMONIC_ADD || mnemonic == ZYDIS_MNEMONIC_SUB;
  if (adds && operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
    const std::int64_t number = operands[1].imm.value.s;
    effects.copies = {.to = to, .from = to, .displacement = mnemonic == ZYDIS_MNEMONIC_ADD ? number : -number};
  }
  const auto& first = effects.accesses[0];
  if (mnemonic == ZYDIS_MNEMONIC_LEA && first && !first->indexed)
    effects.copies = {.to = to, .from = first->base, .displacement = first->displacement};
  if (mnemonic == ZYDIS_MNEMONIC_MOV && first && first->reads) effects.loads = to;
}

/// Sets the change of the stack pointer. A push writes below the old stack pointer.
void add_stack(bool is64, const ZydisDecodedInstruction& decoded, std::span<const ZydisDecodedOperand> operands,
               Effects& effects) {
  const bool pushes = decoded.mnemonic == ZYDIS_MNEMONIC_PUSH;
  if ((!pushes && decoded.mnemonic != ZYDIS_MNEMONIC_POP) || operands.empty()) return;
  const std::int64_t size = decoded.operand_width / 8;
  effects.stack = pushes ? -size : size;
  for (auto& access : effects.accesses)
    if (access && access->writes && pushes) access->displacement -= size;
  if (!is_whole(is64, operands[0])) return;
  (pushes ? effects.stores : effects.loads) = number_of(is64, operands[0].reg.value);
}

std::optional<Effects> effects_of_x86(bool is64, Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, is64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
                   is64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
  ZydisDecodedInstruction decoded;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> all;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &decoded, all.data())))
    return std::nullopt;
  Effects effects{.code = decode_instruction(machine, bytes)};
  if (effects.code.flow == Flow::call) return effects;
  const std::span operands(all.data(), decoded.operand_count);
  std::size_t count = 0;
  for (const ZydisDecodedOperand& operand : operands) {
    const bool writes = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && writes) {
      if (const auto reg = number_of(is64, operand.reg.value)) effects.changed |= 1U << *reg;
    } else if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && count < effects.accesses.size()) {
      if (const auto access = access_of(is64, operand)) effects.accesses[count++] = access;
    }
  }
  add_moves(is64, decoded.mnemonic, operands, effects);
  add_stack(is64, decoded, operands, effects);
  return effects;
}

}  // namespace

std::optional<Effects> effects_of(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  constexpr auto not_known = [] { return std::optional<Effects>(); };
  return by_instructions(
      machine, [&](bool is64) { return effects_of_x86(is64, machine, bytes); }, not_known, not_known);
}

#endif

std::uint32_t kept_by_calls(Machine machine) noexcept {
  // rbx, rbp, r12 to r15; ebx, ebp, esi, edi
  return machine == Machine::x86_64 ? 1U << 3 | 1U << 6 | 0xf000U : machine == Machine::i386 ? 0xe8U : 0;
}

}  // namespace usdt::arch
