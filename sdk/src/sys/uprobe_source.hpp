// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>

#include "usdt/result.hpp"

namespace usdt::sys {

/// What the dynamic uprobe event source wants in a perf_event_attr.
struct UprobeSource {
  std::uint32_t type = 0;
  unsigned ref_ctr_shift = 32;  ///< bit of `config` where the semaphore's file offset starts
};

/// From /sys/bus/event_source/devices/uprobe: "type" holds a number, "format/ref_ctr_offset" e.g. "config:32-63".
/// Errors: not_found, no_permission, io.
[[nodiscard]] Result<UprobeSource> uprobe_source();

}  // namespace usdt::sys
