// SPDX-License-Identifier: BSD-2-Clause
// The ring between the kernel and the consumer of events, made ahead of a trace: TraceOptions::ring. Without one,
// Tracer::start() makes it.
#pragma once

#include <cstdint>
#include <memory>

namespace usdt {
namespace event {
struct RingTaker;
}
inline namespace v1 {

/// Makes the ring for a trace's events ahead of the trace. The kernel clears every page of 32 MiB, which takes 6 ms and
/// more of a small trace's start; here a thread of its own does it while the caller looks for probes and plans. Any
/// thread may make and destroy it, in the process that made it; the destructor waits for the kernel.
///     auto ring = std::make_shared<usdt::EventRing>(32u << 20);   // then select, plan, and start with {.ring = ring}
class EventRing {
 public:
  /// Begins to make a ring for TraceOptions::ring_bytes `bytes`. If it cannot be made, Tracer::start() tries again and
  /// says why.
  explicit EventRing(std::uint32_t bytes);
  EventRing(const EventRing&) = delete;
  EventRing& operator=(const EventRing&) = delete;
  ~EventRing();

 private:
  friend struct event::RingTaker;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
