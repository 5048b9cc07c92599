// SPDX-License-Identifier: BSD-2-Clause
#include "arch/instructions.hpp"

#ifndef USDT_NO_ZYDIS
#include <Zydis/Decoder.h>
#endif

namespace usdt::arch {
namespace {

constexpr std::uint8_t kArm64Instruction = 4;

#ifdef USDT_NO_ZYDIS

constexpr bool kKnowsX86 = false;
std::uint8_t x86_size(bool, std::span<const std::uint8_t>) noexcept { return 0; }

#else

constexpr bool kKnowsX86 = true;

std::uint8_t x86_size(bool is64, std::span<const std::uint8_t> bytes) noexcept {
  ZydisDecoder decoder;
  ZydisDecodedInstruction instruction;
  const auto mode = is64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32;
  const auto stack = is64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32;
  if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, mode, stack))) return 0;
  const auto decoded = ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(), bytes.size(), &instruction);
  return ZYAN_SUCCESS(decoded) ? instruction.length : std::uint8_t{0};
}

#endif

}  // namespace

bool knows_instructions(Machine machine) noexcept { return machine == Machine::aarch64 || kKnowsX86; }

std::uint8_t instruction_size(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  if (machine != Machine::aarch64) return x86_size(machine == Machine::x86_64, bytes);
  return bytes.size() < kArm64Instruction ? std::uint8_t{0} : kArm64Instruction;
}

}  // namespace usdt::arch
