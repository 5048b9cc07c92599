// SPDX-License-Identifier: BSD-2-Clause
// The parts of a tracer. Private to event/.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "event/descendants.hpp"
#include "event/load_part.hpp"
#include "event/overhead_guard.hpp"
#include "event/ring.hpp"
#include "event/row_map.hpp"
#include "event/thread_ends.hpp"
#include "usdt/tracer.hpp"

namespace usdt {
inline namespace v1 {

struct Tracer::Impl {
  Impl(event::Part first, std::shared_ptr<const AttachPlan> p, Link l, event::Ring r, TraceOptions how)
      : shared_plan(std::move(p)),
        link(std::move(l)),
        ring(std::move(r)),
        options(std::move(how)),
        counts(shared_plan->probes.size()) {
    options.ring.reset();  // taken, or of no use to this trace
    parts.push_back(std::move(first));
  }

  /// Returns the object of the first part, with what all parts have in common.
  [[nodiscard]] const LoadedObject& object() const noexcept { return *parts.front().object; }
  /// Returns the part of a site, by its number in the plan.
  [[nodiscard]] const event::Part& part_of(std::uint32_t site) const noexcept {
    if (parts.size() == 1) return parts.front();
    return *std::prev(std::ranges::upper_bound(parts, site, {}, &event::Part::first_site));
  }

  void append(event::Part addition, const AttachPlan& plan, std::uint32_t first_file) {
    addition.files_left = std::max(static_cast<std::uint32_t>(plan.files.size()), 1U);
    addition.first_file = first_file;
    parts.push_back(std::move(addition));
  }

  /// Attaches the last part. Its descriptors, of maps and programs, would otherwise be those of each library that was
  /// ever opened.
  [[nodiscard]] Result<void> attach_last() {
    const std::optional<LoadedObject> object = std::exchange(parts.back().object, std::nullopt);
    return object->attach_to(link, parts.back().program, shared_plan);
  }

  /// A file was let go. What its addition has counted is final, if that was its last one.
  void note_let_go(Index<PlannedFile> file) {
    event::Part& part = *std::prev(std::ranges::upper_bound(parts, file.value, {}, &event::Part::first_file));
    if (&part == &parts.front() || --part.files_left > 0) return;  // the first one's maps are everybody's
    part.unfinished.finish(part.counts, ends);
    part.counts.finish();
    --additions;
  }

  /// Takes out what cannot end any more, before the kernel gives up for it what can: where there is little room.
  void make_room() {
    // Not even the clock is looked at where there is no need: it may be a system call, and that be traced.
    if (std::ranges::none_of(parts, [](const event::Part& part) { return part.unfinished.any(); })) return;
    constexpr std::chrono::milliseconds pause{100};
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look) return;
    for (event::Part& part : parts)
      if (part.unfinished.may_be_crowded(part.counts)) part.unfinished.look(part.counts, ends);
    constexpr int pause_of_work = 2;
    const auto after = std::chrono::steady_clock::now();
    next_look = after + std::max<std::chrono::nanoseconds>(pause, pause_of_work * (after - now));
  }

  /// Returns the layout of a record, with the weight of its time.
  [[nodiscard]] EventLayout layout_of(const usdt_event& head) const {
    EventLayout layout = part_of(head.site).layout;
    if (guard) layout.weight = guard->weight_at(head.ts);
    return layout;
  }

  /// Gives one record to `callback` (none: discards it) and counts it.
  void deliver(std::span<const std::byte> record, const Callback& callback) {
    usdt_event head;
    if (record.size() < sizeof(head)) return;
    std::memcpy(&head, record.data(), sizeof(head));
    auto event = Event::from(record, shared_plan, layout_of(head));
    if (!event) return;  // not one of ours: hits then differ from the sum of the rest, which the account shows
    const auto& span = event->probe().span;
    ProbeCounts& probe = counts[(span ? span->end : event->site().probe).value];
    if (!callback) {
      ++probe.discarded;
      return;
    }
    ++probe.discarded;  // should the callback throw
    callback(*event);
    --probe.discarded;
    ++probe.delivered;
  }

  std::deque<event::Part> parts;  ///< by their first sites; of the first are the ring and what else is shared
  std::shared_ptr<const AttachPlan> shared_plan;
  Link link;
  event::Ring ring;
  TraceOptions options;
  event::ForkMarks marks;
  bool of_family = false;  ///< nobody but a family has the breakpoints the trace began with
  event::ThreadEnds ends;
  std::vector<ProbeCounts> counts;  // delivered and discarded; the rest is in the kernel
  std::chrono::steady_clock::time_point next_look = {};
  std::uint64_t rate_start = 0;
  std::optional<std::string> others_pay;  ///< Tracer::others_pay()
  std::size_t additions = 0;              ///< that have files which were not let go
  std::uint64_t rows_seen = 0;
  event::KeptStacks kept_stacks;
  bool in_callback = false;
  std::unique_ptr<event::OverheadGuard> guard;  ///< the last: it is about the rest
};

}  // namespace v1
}  // namespace usdt
