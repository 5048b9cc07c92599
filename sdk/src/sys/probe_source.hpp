// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string>

#include "usdt/result.hpp"

namespace usdt::sys {

/// The numbers that the dynamic event source "uprobe" or "kprobe" (4.17) takes in a perf_event_attr.
struct ProbeSource {
  std::uint32_t type = 0;
  unsigned retprobe_bit = 0;    ///< of `config`: at the return of the function
  unsigned ref_ctr_shift = 32;  ///< uprobe: bit of `config` where the semaphore's file offset starts
};

/// Reads them from /sys/bus/event_source/devices/NAME: "type" holds a number, "format/retprobe" e.g. "config:0",
/// "format/ref_ctr_offset" e.g. "config:32-63". Errors: not_found, no_permission, io.
[[nodiscard]] Result<ProbeSource> probe_source(const std::string& name);

}  // namespace usdt::sys
