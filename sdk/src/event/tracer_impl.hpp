// SPDX-License-Identifier: BSD-2-Clause
// The parts of a tracer. Private to event/.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "event/context_places.hpp"
#include "event/descendants.hpp"
#include "event/in_flight.hpp"
#include "event/interpreters.hpp"
#include "event/overhead_guard.hpp"
#include "event/parts.hpp"
#include "event/ring.hpp"
#include "event/row_map.hpp"
#include "usdt/tracer.hpp"

namespace usdt {
inline namespace v1 {

struct Tracer::Impl {
  Impl(event::Part first, std::shared_ptr<const AttachPlan> p, Link l, event::Ring r, TraceOptions how)
      : parts(std::move(first)),
        shared_plan(std::move(p)),
        link(std::move(l)),
        ring(std::move(r)),
        options(std::move(how)),
        counts(shared_plan->probes.size()) {
    options.ring.reset();  // taken, or of no use to this trace
  }

  /// Attaches the last part. Its descriptors, of maps and programs, would otherwise be those of each library that was
  /// ever opened.
  [[nodiscard]] Result<void> attach_last() {
    event::Part& last = parts.all().back();
    const std::optional<LoadedObject> object = std::exchange(last.object, std::nullopt);
    return object->attach_to(link, last.program, shared_plan);
  }

  /// Tells the programs of the interpreters of processes that are known before their first events.
  [[nodiscard]] Result<void> follow_scripts();

  /// Finds out what is to be known of the command, which begins about now, and of processes that are asked about.
  void look_at_processes() {
    if (options.command != 0) interpreters.expect(options.command);
    if (!contexts) return;
    if (options.command != 0) contexts->expect(options.command);
    contexts->look_at_wanted();
  }
  /// How long an event may be waited for, at most `longest`, until the command is to be looked at again.
  [[nodiscard]] std::chrono::milliseconds until_next_look(std::chrono::milliseconds longest) const {
    if (options.command == 0) return longest;
    longest = interpreters.until_due(longest);
    return contexts ? contexts->until_due(longest) : longest;
  }

  /// Gives one record to `callback` (none: discards it) and counts it.
  void deliver(std::span<const std::byte> record, const Callback& callback) {
    usdt_event head;
    if (record.size() < sizeof(head)) return;
    std::memcpy(&head, record.data(), sizeof(head));
    auto event = Event::from(record, shared_plan, event::layout_of(head, parts, guard.get()));
    if (!event) return;  // not one of ours: hits then differ from the sum of the rest, which the account shows
    if (contexts) contexts->look_again(*event);
    if (contexts) contexts->name_attributes(*event);
    const auto& span = event->probe().span;
    ProbeCounts& probe = counts[(span ? span->end : event->site().probe).value];
    if (!callback) {
      ++probe.discarded;
      return;
    }
    if (event->layout().script_depth > 0) interpreters.see(*event);
    ++probe.discarded;  // should the callback throw
    callback(*event);
    --probe.discarded;
    ++probe.delivered;
  }

  event::Parts parts;
  std::shared_ptr<const AttachPlan> shared_plan;
  Link link;
  event::Ring ring;
  TraceOptions options;
  event::ForkMarks marks;
  std::optional<event::ContextPlaces> contexts = {};  ///< where events have them
  event::Interpreters interpreters;
  bool of_family = false;           ///< nobody but a family has the breakpoints the trace began with
  std::vector<ProbeCounts> counts;  // delivered and discarded; the rest is in the kernel
  std::uint64_t rate_start = 0;
  std::optional<std::string> others_pay;  ///< Tracer::others_pay()
  std::uint64_t rows_seen = 0;
  event::KeptStacks kept_stacks;
  bool in_callback = false;
  std::unique_ptr<event::OverheadGuard> guard;  ///< the last: it is about the rest
};

}  // namespace v1
}  // namespace usdt
