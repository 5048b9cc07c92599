// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <string_view>

#include "usdt/result.hpp"

namespace usdt::sys {

/// Raises the soft limit of this process's descriptors to `descriptors`, as far as the hard one allows; it is never
/// lowered.
void make_room_for(std::size_t descriptors) noexcept;

/// The same for so many more than there are. Returns how many more there can be then, at least: the numbers above the
/// lowest one that is free.
[[nodiscard]] std::size_t make_room_for_more(std::size_t descriptors) noexcept;

/// The same for who cannot do with fewer: `what` ("a BPF object") is in the message. To ask beforehand is for those
/// whose answer would be another one, and wrong, where a file could not be opened in the midst of it.
[[nodiscard]] Result<void> need_descriptors(std::size_t descriptors, std::string_view what);

/// What is open at once, at most, while names are looked for, or a file with its debug information is read.
inline constexpr std::size_t kDescriptorsToRead = 16;

}  // namespace usdt::sys
