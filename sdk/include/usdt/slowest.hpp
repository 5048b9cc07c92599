// SPDX-License-Identifier: BSD-2-Clause
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

/// An event that was kept, with what was known when it came and is not part of it.
struct KeptEvent {
  OwnedEvent event;
  std::int64_t wall_offset = 0;                    ///< what the time of day was ahead of its timestamp(), ns
  std::optional<Result<Stack>> kernel_stack = {};  ///< EventStacks; nothing: not looked at
  std::optional<Result<Stack>> user_stack = {};
};

/// The calls and spans that took longest, of a trace (TraceOptions::slow_only) or of a recording. Of two that took
/// equally long, the one that began first comes first. Threads: one at a time.
class SlowestEvents {
 public:
  /// Keeps at most so many, with copies of their records.
  explicit SlowestEvents(std::size_t most) : most_(most) {}

  /// Whether it is among them as it looks now.
  [[nodiscard]] bool wants(const Event& event) const;
  /// Keeps it, if it is, and forgets the one it takes the place of. True: it is kept.
  bool add(const Event& event, std::int64_t wall_offset = 0, const EventStacks& stacks = {});
  /// For Tracer::leave_out_faster(): what takes less will not be among them. 0: there is still room.
  [[nodiscard]] std::chrono::nanoseconds least() const;

  /// The slowest first; valid until the next add().
  [[nodiscard]] std::span<const KeptEvent> events() const noexcept { return kept_; }
  /// The same, to have their stacks looked at later than when they came, which takes a while.
  [[nodiscard]] std::span<KeptEvent> events() noexcept { return kept_; }

 private:
  std::size_t most_;
  std::vector<KeptEvent> kept_;
};

}  // namespace v1
}  // namespace usdt
