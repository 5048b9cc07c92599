// SPDX-License-Identifier: BSD-2-Clause
// The ring that was made ahead (EventRing). Private to event/.
#pragma once

#include <cstdint>

#include "sys/unique_fd.hpp"
#include "usdt/event_ring.hpp"

namespace usdt::event {

/// The size of the ring that a trace asked for `wanted` bytes has: a power of two, at least a page.
[[nodiscard]] std::uint32_t ring_size(std::uint32_t wanted);

struct RingTaker {
  /// The ring's map, if it is there, of `bytes`, and nobody has taken it: a trace that failed to start may have left
  /// records in its own. Waits until the kernel has made it.
  [[nodiscard]] static sys::UniqueFd take(EventRing& ring, std::uint32_t bytes);
};

}  // namespace usdt::event
