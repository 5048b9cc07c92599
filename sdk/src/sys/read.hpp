// SPDX-License-Identifier: BSD-2-Clause
// Reading that a signal does not end early.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "usdt/result.hpp"

namespace usdt::sys {

/// read(2) of what there is, again where a signal came first: 0 at the end, -1 with errno. A system call and no more.
[[nodiscard]] ssize_t read_some(int fd, std::span<char> room) noexcept;
/// Fills `room` from byte `offset` of the file on; returns how many bytes there were before the end or an error.
[[nodiscard]] std::size_t read_at(int fd, std::uint64_t offset, std::span<std::byte> room) noexcept;
/// The text of a file whose size nobody knows, as in /proc and /sys: its first `most` bytes where it has more. Errors:
/// those of open(2) and read(2), with the path.
[[nodiscard]] Result<std::string> read_text(const std::string& path, std::size_t most);

}  // namespace usdt::sys
