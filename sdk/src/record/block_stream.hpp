// SPDX-License-Identifier: BSD-2-Clause
// From events to the blocks of a recording. Private to record/.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "record/block.hpp"
#include "record/definitions.hpp"
#include "record/events.hpp"
#include "usdt/recording.hpp"

namespace usdt::record {

/// A finished block.
struct Block {
  BlockKind kind = BlockKind::end;
  std::vector<std::uint8_t> bytes = {};
  std::size_t events = 0;
  std::uint64_t first = 0, last = 0;                                   ///< times of its events
  std::vector<std::pair<std::uint32_t, std::uint64_t>> by_probe = {};  ///< events of each that has any
};

class BlockStream {
 public:
  using Emit = std::function<Result<void>(Block block)>;

  /// `plan` lives as long, and may grow.
  BlockStream(const AttachPlan& plan, const EventLayout& layout, const RecordingInfo& info);

  // All of these hand finished blocks to `emit`, whose errors they pass on.
  [[nodiscard]] Result<void> plan(const AttachPlan& plan, const Emit& emit);
  [[nodiscard]] Result<void> event(const Event& event, std::int64_t wall_offset, const EventStacks& stacks,
                                   const Emit& emit);
  [[nodiscard]] Result<void> property(std::string_view name, std::string_view text, const Emit& emit);
  [[nodiscard]] Result<void> notice(const RecordedNotice& notice, const Emit& emit);
  [[nodiscard]] Result<void> followed(const Followed& followed, const Emit& emit);
  [[nodiscard]] Result<void> ledger(const RecordedLedger& ledger, const Emit& emit);
  [[nodiscard]] Result<void> flush(const Emit& emit);
  [[nodiscard]] Result<void> flush_if_due(const Emit& emit);
  [[nodiscard]] Result<void> end(const Emit& emit);
  /// How long before `timestamp` the oldest event was that is in no block yet, ns.
  [[nodiscard]] std::uint64_t waiting(std::uint64_t timestamp) const noexcept {
    return events_.events() > 0 && timestamp > events_.first() ? timestamp - events_.first() : 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] Result<void> emit_definitions(const Emit& emit);
  [[nodiscard]] Result<void> emit_events(const Emit& emit);
  /// Emits the events so far, and then the definitions that come before the next ones.
  [[nodiscard]] Result<void> emit_between(const Emit& emit);

  const AttachPlan* plan_;
  std::uint32_t string_size_;  ///< that readers know of
  DefinitionWriter definitions_;
  EventEncoder events_;
  Packer packer_;
  std::vector<std::uint64_t> of_probe_;  ///< events in the block at hand
  std::vector<std::uint32_t> probes_;    ///< that have any
  Clock::time_point oldest_ = {};        ///< when the first of them was added
};

}  // namespace usdt::record
