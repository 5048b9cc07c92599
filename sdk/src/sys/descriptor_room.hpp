// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>

namespace usdt::sys {

/// Raises the soft limit of this process's descriptors to `descriptors`, as far as the hard one allows; it is never
/// lowered.
void make_room_for(std::size_t descriptors) noexcept;

/// How many more there may be, at least: the numbers above the lowest one that is free.
[[nodiscard]] std::size_t descriptors_left() noexcept;

}  // namespace usdt::sys
