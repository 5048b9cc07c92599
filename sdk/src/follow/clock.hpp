// SPDX-License-Identifier: BSD-2-Clause
// The clock of what tasks do. Private to follow/.
#pragma once

#include <cstdint>
#include <ctime>

namespace usdt::follow {

/// Nanoseconds of CLOCK_MONOTONIC, as in sys::TaskRecord.
[[nodiscard]] inline std::uint64_t now() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace usdt::follow
