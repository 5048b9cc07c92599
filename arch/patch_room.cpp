// SPDX-License-Identifier: BSD-2-Clause
#include "arch/patch_room.hpp"

#include <algorithm>
#include <array>

namespace usdt::arch {

std::uint8_t patch_room(Machine machine, std::span<const std::uint8_t> bytes) noexcept {
  // jmp over; nopw 512(%rax,%rax) (LLVM: X86MCInstLower.cpp, LowerPATCHABLE_FUNCTION_ENTER)
  static constexpr std::array<std::uint8_t, kLongestPatchRoom> kRoom{0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84,
                                                                     0x00, 0x00, 0x02, 0x00, 0x00};
  const bool is_there = machine == Machine::x86_64 && bytes.size() >= kRoom.size() &&
                        std::equal(kRoom.begin(), kRoom.end(), bytes.begin());
  return is_there ? static_cast<std::uint8_t>(kRoom.size()) : std::uint8_t{0};
}

}  // namespace usdt::arch
