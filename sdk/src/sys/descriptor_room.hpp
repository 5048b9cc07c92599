// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <string_view>

#include "usdt/result.hpp"

namespace usdt::sys {

/// Raises the soft limit of this process's descriptors to `descriptors`, as far as the hard one allows; it is never
/// lowered.
void make_room_for(std::size_t descriptors) noexcept;

/// Raises the limit for so many descriptors more than there are. Returns how many more there can be then, at least: the
/// numbers above the lowest one that is free.
[[nodiscard]] std::size_t make_room_for_more(std::size_t descriptors) noexcept;

/// Makes room for so many descriptors more, or fails: `what` ("a BPF object") is in the message. For callers whose
/// answer would be wrong if a file could not be opened half-way. Errors: limit.
[[nodiscard]] Result<void> need_descriptors(std::size_t descriptors, std::string_view what);

/// The most descriptors that are open at once while names are looked for, or a file with its debug information is read.
inline constexpr std::size_t kDescriptorsToRead = 16;

}  // namespace usdt::sys
