// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>

#include "arch/riscv64.hpp"

namespace usdt::arch::riscv64 {
namespace {

struct Refused {
  std::uint32_t code;
  std::uint32_t mask;
  std::string_view reason;
};

constexpr std::string_view kSystem = "uprobes step no system instruction";
constexpr std::string_view kReserved = "a reservation of memory is lost when its load or store is stepped";

/// Instructions that riscv_probe_decode_insn() of arch/riscv/kernel/probes/decode-insn.c refuses (masks:
/// arch/riscv/include/asm/insn.h), as it is since it simulates compressed jumps. Loads with a reservation it takes: the
/// trap behind the copy of the instruction ends the reservation, and the program's loop never does (The RISC-V
/// Instruction Set Manual, volume I, "Zalrsc").
constexpr std::array kRefused = {
    Refused{0x00000073, 0x0000007f, kSystem},                    // ecall, ebreak, csrrw ...
    Refused{0x0000000f, 0x0000007f, "uprobes step no fence"},    // fence, fence.i, pause
    Refused{0x00009002, 0x0000ffff, "a breakpoint of its own"},  // c.ebreak
    Refused{0x1000002f, 0xf800007f, kReserved},                  // lr
    Refused{0x1800002f, 0xf800007f, kReserved},                  // sc
};

}  // namespace

std::string_view uprobe_refusal(std::span<const std::uint8_t> bytes) noexcept {
  const auto code = code_at(bytes);
  if (!code) return {};
  const auto row = std::ranges::find_if(kRefused, [&](const Refused& each) { return code->is(each.mask, each.code); });
  return row == kRefused.end() ? std::string_view() : row->reason;
}

}  // namespace usdt::arch::riscv64
