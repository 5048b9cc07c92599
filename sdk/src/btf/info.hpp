// SPDX-License-Identifier: BSD-2-Clause
// btf_type::info. Private to btf/.
#pragma once

#include <cstdint>

namespace usdt::btf {

/// Bits 24 to 30; five bits before Linux 7.2, the others zero.
constexpr std::uint32_t kind_of(std::uint32_t info) noexcept { return info >> 24 & 0x7f; }
/// Bits 0 to 23; sixteen bits before Linux 7.2.
constexpr std::uint32_t vlen_of(std::uint32_t info) noexcept { return info & 0xffffff; }

}  // namespace usdt::btf
