// SPDX-License-Identifier: BSD-2-Clause
// What has begun and not ended.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "event/event_copies.hpp"
#include "event/tracer_impl.hpp"

namespace usdt {
inline namespace v1 {
namespace {

std::uint64_t monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::vector<OwnedEvent> Tracer::in_flight() {
  EventCopies copies;
  std::vector<std::byte> aged;
  const auto keep = [&](std::span<const std::byte> record) {
    usdt_event head;
    std::memcpy(&head, record.data(), sizeof(head));
    const std::uint64_t now = monotonic_now();
    head.duration = now - std::min(now, static_cast<std::uint64_t>(head.ts));
    aged.assign(record.begin(), record.end());
    std::memcpy(aged.data(), &head, sizeof(head));
    if (auto event = Event::from(aged, impl_->shared_plan, impl_->layout_of(head))) copies.add(*event);
  };
  for (event::Part& part : impl_->parts) part.unfinished.look(part.counts, impl_->ends, keep);
  std::vector<OwnedEvent> all = std::move(copies).take();
  std::ranges::stable_sort(all, {}, [](const OwnedEvent& open) { return open->timestamp(); });
  return all;
}

}  // namespace v1
}  // namespace usdt
