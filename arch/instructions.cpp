// SPDX-License-Identifier: BSD-2-Clause
#include "arch/instructions.hpp"

#include <algorithm>

#ifndef USDT_NO_ZYDIS
#include <Zydis/Decoder.h>
#endif

namespace usdt::arch {
namespace {

constexpr std::uint8_t kArm64Instruction = 4;

#ifdef USDT_NO_ZYDIS

constexpr bool kKnowsX86 = false;
Instruction decode_x86(bool, std::span<const std::uint8_t>) noexcept { return {}; }

#else

constexpr bool kKnowsX86 = true;

Flow flow_of(const ZydisDecodedInstruction& instruction) noexcept {
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      return Flow::branch;
    case ZYDIS_CATEGORY_UNCOND_BR:
      return Flow::jump;
    case ZYDIS_CATEGORY_CALL:
      return Flow::call;
    default:
      return instruction.mnemonic == ZYDIS_MNEMONIC_RET ? Flow::ret : Flow::next;
  }
}

Instruction decode_x86(bool is64, std::span<const std::uint8_t> bytes) noexcept {
  ZydisDecoder decoder;
  ZydisDecodedInstruction decoded;
  const auto mode = is64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32;
  const auto stack = is64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32;
  if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, mode, stack))) return {};
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(), bytes.size(), &decoded))) return {};
  Instruction instruction{.size = decoded.length, .flow = flow_of(decoded)};
  if (instruction.flow != Flow::next && decoded.raw.imm[0].is_relative)
    instruction.target = decoded.raw.imm[0].value.s + decoded.length;
  return instruction;
}

#endif

/// A field of `bits` bits from bit `from` on that counts instructions.
std::int64_t distance(std::uint32_t word, unsigned from, unsigned bits) noexcept {
  const auto field = static_cast<std::int64_t>(std::uint64_t{word >> from} << (64 - bits)) >> (64 - bits);
  return field * kArm64Instruction;
}

/// Arm Architecture Reference Manual, C4.1.65, "Branches, Exception Generating and System instructions".
Instruction decode_arm64(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() < kArm64Instruction) return {};
  const std::uint32_t word = bytes[0] | bytes[1] << 8U | bytes[2] << 16U | std::uint32_t{bytes[3]} << 24U;
  const auto is = [word](std::uint32_t mask, std::uint32_t value) { return (word & mask) == value; };
  Instruction instruction{.size = kArm64Instruction};
  if (is(0xfc000000, 0x14000000)) {  // b
    instruction.flow = Flow::jump;
    instruction.target = distance(word, 0, 26);
  } else if (is(0xfc000000, 0x94000000)) {  // bl
    instruction.flow = Flow::call;
    instruction.target = distance(word, 0, 26);
  } else if (is(0xff000000, 0x54000000) || is(0x7e000000, 0x34000000)) {  // b.cond, cbz, cbnz
    instruction.flow = Flow::branch;
    instruction.target = distance(word, 5, 19);
  } else if (is(0x7e000000, 0x36000000)) {  // tbz, tbnz
    instruction.flow = Flow::branch;
    instruction.target = distance(word, 5, 14);
  } else if (is(0xfefff000, 0xd61f0000)) {  // br and its authenticating forms
    instruction.flow = Flow::jump;
  } else if (is(0xfefff000, 0xd63f0000)) {  // blr
    instruction.flow = Flow::call;
  } else if (is(0xfffff000, 0xd65f0000)) {  // ret
    instruction.flow = Flow::ret;
  }
  return instruction;
}

}  // namespace

bool knows_instructions(Machine machine) noexcept { return machine == Machine::aarch64 || kKnowsX86; }

Instruction decode_instruction(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  return machine == Machine::aarch64 ? decode_arm64(bytes) : decode_x86(machine == Machine::x86_64, bytes);
}

std::uint8_t instruction_size(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  return decode_instruction(machine, bytes).size;
}

bool ends_with_call(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  for (std::size_t size = std::min(bytes.size(), kLongestCall); size > 0; --size) {
    const Instruction last = decode_instruction(machine, bytes.last(size));
    if (last.size == size && last.flow == Flow::call) return true;
  }
  return false;
}

}  // namespace usdt::arch
