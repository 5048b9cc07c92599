// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>

namespace usdt::features {

inline constexpr std::uint64_t insn_move_r0 = 0x00000000000000b7;            // r0 = 0
inline constexpr std::uint64_t insn_get_attach_cookie = 0x000000ae00000085;  // BPF_FUNC_get_attach_cookie is 174

/// A probe program that returns 0 after `first`, loaded for `attach_type` (0: perf events); its descriptor or -errno.
[[nodiscard]] int load_trivial_program(std::uint64_t first, std::uint32_t attach_type);

}  // namespace usdt::features
