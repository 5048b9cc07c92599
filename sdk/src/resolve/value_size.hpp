// SPDX-License-Identifier: BSD-2-Clause
// Private to resolve/.
#pragma once

#include <cstdint>

namespace usdt::resolve {

/// Bytes that BPF programs read a value of.
constexpr bool is_value_size(std::uint32_t size) noexcept { return size == 1 || size == 2 || size == 4 || size == 8; }
}  // namespace usdt::resolve
