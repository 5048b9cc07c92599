// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>

namespace usdt::sys {

/// Raises the soft limit of this process's descriptors to `descriptors`, as far as the hard one allows; it is never
/// lowered.
void make_room_for(std::size_t descriptors) noexcept;

/// The same for so many more than there are. Returns how many more there can be then, at least: the numbers above the
/// lowest one that is free.
[[nodiscard]] std::size_t make_room_for_more(std::size_t descriptors) noexcept;

}  // namespace usdt::sys
