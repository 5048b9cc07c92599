// SPDX-License-Identifier: BSD-2-Clause
// Bytes that may be instructions which lead somewhere else: jumps, branches and calls with a distance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "arch/instruction_sets.hpp"
#include "arch/instructions.hpp"
#include "arch/riscv64.hpp"
#include "usdt/address.hpp"

namespace usdt::arch {

namespace leads {

template <class Visit>
bool of_x86(std::span<const std::uint8_t> code, VirtAddr start, Visit&& visit) {
  constexpr std::size_t near = 4;  // bytes of a distance; others have one
  for (std::size_t i = 0; i + 1 < code.size(); ++i) {
    const std::uint8_t byte = code[i];
    const VirtAddr here = start + i;
    const bool is_short = byte == 0xeb || (byte >= 0x70 && byte <= 0x7f) || (byte >= 0xe0 && byte <= 0xe3);
    if (is_short && !visit(here, here + 2 + static_cast<std::uint64_t>(static_cast<std::int8_t>(code[i + 1])), false))
      return false;
    const bool is_near = byte == 0xe8 || byte == 0xe9 || (byte >= 0x80 && byte <= 0x8f);  // the latter behind 0x0f
    if (!is_near || i + 1 + near > code.size()) continue;
    std::int32_t distance = 0;
    std::memcpy(&distance, &code[i + 1], near);
    if (!visit(here, here + 1 + near + static_cast<std::uint64_t>(std::int64_t{distance}), byte == 0xe8)) return false;
  }
  return true;
}

template <class Visit>
bool of_aarch64(std::span<const std::uint8_t> code, VirtAddr start, Visit&& visit) {
  constexpr std::size_t size = 4;
  for (std::size_t i = 0; i + size <= code.size(); i += size) {
    const Instruction each = decode_instruction(Machine::aarch64, code.subspan(i));
    if (!each.target) continue;
    if (!visit(start + i, start + i + static_cast<std::uint64_t>(*each.target), each.flow == Flow::call)) return false;
  }
  return true;
}

template <class Visit>
bool of_riscv64(std::span<const std::uint8_t> code, VirtAddr start, Visit&& visit) {
  constexpr std::size_t smallest = 2;
  for (std::size_t i = 0; i + smallest <= code.size(); i += smallest) {
    const auto there = code.subspan(i);
    const Instruction each = riscv64::decode(there);
    const auto far = riscv64::far_jump(there);
    if (!each.target && !far) continue;
    const std::int64_t target = far ? far->target : *each.target;
    const bool is_call = far ? far->is_call : each.flow == Flow::call;
    if (!visit(start + i, start + i + static_cast<std::uint64_t>(target), is_call)) return false;
  }
  return true;
}

}  // namespace leads

/// Calls `visit(at, target, is_call)` for each place of `code` that may have an instruction with a distance to
/// somewhere, until it returns false; returns whether it never did. On x86 each byte may begin one, on riscv64 each
/// second byte. `start`: the address of `code`.
template <class Visit>
bool for_each_lead(Machine machine, std::span<const std::uint8_t> code, VirtAddr start, Visit&& visit) {
  return by_instructions(
      machine, [&](bool) { return leads::of_x86(code, start, visit); },
      [&] { return leads::of_aarch64(code, start, visit); }, [&] { return leads::of_riscv64(code, start, visit); });
}

}  // namespace usdt::arch
