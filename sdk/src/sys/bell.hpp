// SPDX-License-Identifier: BSD-2-Clause
// Descriptors that wake a thread which waits in poll(2).
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace usdt::sys {

/// Makes an eventfd(2) readable, until what waits for it has read it.
inline void ring_eventfd(int fd) noexcept {
  const std::uint64_t one = 1;
  while (::write(fd, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

}  // namespace usdt::sys
