// SPDX-License-Identifier: BSD-2-Clause
// The clock of what tasks do. Private to follow/.
#pragma once

#include <cstdint>

#include "usdt/clock.hpp"

namespace usdt::follow {

/// Nanoseconds of event_clock(), as in sys::TaskRecord.
[[nodiscard]] inline std::uint64_t now() noexcept { return event_clock(); }

}  // namespace usdt::follow
