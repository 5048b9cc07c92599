// SPDX-License-Identifier: BSD-2-Clause
#include "event/event_copies.hpp"

#include <utility>

namespace usdt {
inline namespace v1 {

void EventCopies::add(const Event& event) {
  const auto* record = reinterpret_cast<const std::uint64_t*>(event.header_);
  events_.push_back(event);
  words_.insert(words_.end(), record, record + event.layout_.record_size() / sizeof(std::uint64_t));
}

std::vector<OwnedEvent> EventCopies::take() && {
  if (events_.empty()) return {};
  const auto* shared_plan = events_.front().shared_plan_;
  const auto block = std::make_shared<const Block>(
      Block{std::move(words_), shared_plan ? *shared_plan : std::shared_ptr<const AttachPlan>()});
  const auto* at = reinterpret_cast<const std::byte*>(block->words.data());
  std::vector<OwnedEvent> owned;
  owned.reserve(events_.size());
  for (Event& event : events_) {
    event.view(at);
    event.shared_plan_ = block->plan ? &block->plan : nullptr;
    at += event.layout_.record_size();
    owned.push_back(OwnedEvent(event, block));
  }
  return owned;
}

OwnedEvent EventCopies::of(const Event& event) {
  EventCopies one;
  one.add(event);
  return std::move(std::move(one).take().front());
}

}  // namespace v1
}  // namespace usdt
