// SPDX-License-Identifier: BSD-2-Clause
#include "event/event_copies.hpp"

#include <algorithm>
#include <utility>

namespace usdt {
inline namespace v1 {

void EventCopies::append(const void* bytes, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(bytes);
  bytes_.insert(bytes_.end(), from, from + size);
}

void EventCopies::append_texts(const Event& event) {
  const auto& spec = event.plan_->specs[event.site_->spec].args;
  const std::size_t args = std::min<std::size_t>(spec.size(), std::min(event.header_->arg_cnt, event.layout_.max_args));
  std::size_t slot = 0;
  for (std::size_t n = 0; n < args && slot < event.layout_.string_slots; ++n) {
    if (spec[n].capture == USDT_CAPTURE_NONE) continue;
    append(event.text_start(n, slot++), event.layout_.captured_bytes(event.slots_[n]));
  }
}

/// Slots are as large as the longest text that can be, and recordings may claim what they like to have: a copy takes
/// what the event has.
void EventCopies::add(const Event& event) {
  const EventLayout& layout = event.layout_;
  const auto* record = reinterpret_cast<const std::byte*>(event.header_);
  Event& copy = events_.emplace_back(event);
  copy.layout_.max_args = std::min(event.header_->arg_cnt, layout.max_args);
  if (event.keys_) keys_.push_back(*event.keys_);
  append(record, copy.layout_.texts_at() - layout.stack_depth * sizeof(std::uint64_t));
  append(event.stack_, layout.stack_depth * sizeof(std::uint64_t));
  const std::size_t before = bytes_.size();
  append_texts(event);
  copy.layout_.packed_texts = static_cast<std::uint32_t>(bytes_.size() - before);
  bytes_.resize((bytes_.size() + 7) / 8 * 8);
  append(record + layout.user_stack_at(), layout.record_size() - layout.user_stack_at());
}

std::vector<OwnedEvent> EventCopies::take() && {
  if (events_.empty()) return {};
  const auto* shared_plan = events_.front().shared_plan_;
  const auto block = std::make_shared<const Block>(
      Block{std::move(bytes_), shared_plan ? *shared_plan : std::shared_ptr<const AttachPlan>(), std::move(keys_)});
  auto keys = block->keys.begin();
  const std::byte* at = block->bytes.data();
  std::vector<OwnedEvent> owned;
  owned.reserve(events_.size());
  for (Event& event : events_) {
    event.view(at);
    event.shared_plan_ = block->plan ? &block->plan : nullptr;
    if (event.keys_) event.keys_ = &*keys++;
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
