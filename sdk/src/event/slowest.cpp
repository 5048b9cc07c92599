// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/slowest.hpp"

#include <algorithm>
#include <limits>

namespace usdt {
inline namespace v1 {
namespace {

bool is_slower(const Event& a, const Event& b) {
  if (a.duration() != b.duration()) return a.duration() > b.duration();
  return a.timestamp() != b.timestamp() ? a.timestamp() < b.timestamp() : a.tid() < b.tid();
}

std::optional<Result<Stack>> copy_of(const Result<Stack>* stack) {
  return stack ? std::optional(*stack) : std::nullopt;
}

}  // namespace

bool SlowestEvents::wants(const Event& event) const {
  if (kept_.size() < most_) return true;
  return most_ > 0 && is_slower(event, *kept_.back().event);
}

bool SlowestEvents::add(const Event& event, std::int64_t wall_offset, const EventStacks& stacks) {
  if (!wants(event)) return false;
  if (kept_.size() == most_) kept_.pop_back();
  const auto at = std::ranges::upper_bound(kept_, event, is_slower,
                                           [](const KeptEvent& kept) -> const Event& { return *kept.event; });
  kept_.insert(at, {.event = OwnedEvent(event),
                    .wall_offset = wall_offset,
                    .kernel_stack = copy_of(stacks.kernel),
                    .user_stack = copy_of(stacks.user)});
  return true;
}

std::chrono::nanoseconds SlowestEvents::least() const {
  if (kept_.size() < most_ || kept_.empty()) return {};
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();  // a recording may claim more
  return std::chrono::nanoseconds(std::min(kept_.back().event->duration(), most));
}

}  // namespace v1
}  // namespace usdt
