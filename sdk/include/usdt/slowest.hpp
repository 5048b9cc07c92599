// SPDX-License-Identifier: BSD-2-Clause
// The calls and spans that took longest: SlowestEvents::add() keeps an event if it is among them, least() tells what
// the tracer may leave out from then on, events() lists them.
//     usdt::SlowestEvents slowest(10);
//     tracer.poll([&](const usdt::Event& e) { if (slowest.add(e)) tracer.leave_out_faster(slowest.least()); }, 100ms);
// Threads: one at a time. Kept events are copies, which outlive the tracer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "usdt/event.hpp"
#include "usdt/result.hpp"
#include "usdt/stack.hpp"

namespace usdt {
inline namespace v1 {

/// Holds an event that was kept, with what was known when it came and is not part of it.
struct KeptEvent {
  OwnedEvent event;
  std::int64_t wall_offset = 0;                    ///< how much the time of day was ahead of its timestamp(), ns
  std::optional<Result<Stack>> kernel_stack = {};  ///< EventStacks; nothing: not looked at
  std::optional<Result<Stack>> user_stack = {};
};

/// Keeps the calls and spans that took longest, of a trace (TraceOptions::slow_only) or of a recording. If two took
/// equally long, the one that began first comes first. Threads: one at a time.
class SlowestEvents {
 public:
  /// Makes room for at most `most` events, with copies of their records.
  explicit SlowestEvents(std::size_t most) : most_(most) {}

  /// Returns whether the event is among the slowest so far.
  [[nodiscard]] bool wants(const Event& event) const;
  /// Keeps the event if it is among the slowest so far, and forgets the one whose place it takes. Returns whether it is
  /// kept.
  bool add(const Event& event, std::int64_t wall_offset = 0, const EventStacks& stacks = {});
  /// Returns the duration below which no event will be kept, for Tracer::leave_out_faster(). 0: there is still room.
  [[nodiscard]] std::chrono::nanoseconds least() const;

  /// Returns the kept events, the slowest first; valid until the next add().
  [[nodiscard]] std::span<const KeptEvent> events() const noexcept { return kept_; }
  /// Returns the kept events for changing: their stacks can be looked at later than when they came, which takes a
  /// while.
  [[nodiscard]] std::span<KeptEvent> events() noexcept { return kept_; }

 private:
  std::size_t most_;
  std::vector<KeptEvent> kept_;
};

}  // namespace v1
}  // namespace usdt
