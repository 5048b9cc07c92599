// SPDX-License-Identifier: BSD-2-Clause
#include "event/in_flight.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "event/event_copies.hpp"

namespace usdt::event {
namespace {

std::uint64_t monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

EventLayout layout_of(const usdt_event& head, const Parts& parts, const OverheadGuard* guard) {
  EventLayout layout = parts.of_site(head.site).layout;
  if (guard) layout.weight = guard->weight_at(head.ts);
  return layout;
}

std::vector<OwnedEvent> events_in_flight(const std::shared_ptr<const AttachPlan>& plan, Parts& parts,
                                         const OverheadGuard* guard, ContextPlaces* contexts) {
  EventCopies copies;
  std::vector<std::byte> aged;
  // One time for all: else those that are looked at later seem older than they are.
  const std::uint64_t now = parts.ends().end_of_last_process().value_or(monotonic_now());
  const auto keep = [&](std::span<const std::byte> record) {
    usdt_event head;
    std::memcpy(&head, record.data(), sizeof(head));
    head.duration = now - std::min(now, static_cast<std::uint64_t>(head.ts));
    aged.assign(record.begin(), record.end());
    std::memcpy(aged.data(), &head, sizeof(head));
    auto event = Event::from(aged, plan, layout_of(head, parts, guard));
    if (!event) return;
    if (contexts) contexts->name_attributes(*event);
    copies.add(*event);
  };
  for (Part& part : parts.all()) part.unfinished.look(part.counts, parts.ends(), keep);
  std::vector<OwnedEvent> all = std::move(copies).take();
  std::ranges::stable_sort(all, {}, [](const OwnedEvent& open) { return open->timestamp(); });
  return all;
}

}  // namespace usdt::event
