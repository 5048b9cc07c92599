// SPDX-License-Identifier: BSD-2-Clause
#include "values.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "usdt/slowest.hpp"

namespace usdtc {
namespace {

/// Returns the bytes of memory that a kept event takes, about.
std::uint64_t bytes_of(const usdtc_event& event) {
  constexpr std::uint64_t allocation = 96;  // what a copy has beside its record
  return sizeof(event) + event.event().record().size() + allocation;
}

}  // namespace

void ValueTaker::want_events(usdtc_on_event on_event, void* user) {
  events_ = on_event ? Events::handed_on : Events::kept;
  on_event_ = on_event;
  user_ = user;
}

void ValueTaker::begin(const usdt::AnswerStart& start) {
  view_ = start.question.view;
  around_ = &start.around;
  texts_ = std::make_shared<const PlanTexts>(start.plan);
  lost_.resize(start.plan.probes.size());
}

void ValueTaker::trace(const usdt::AttachPlan& plan, std::size_t /*probes*/) {
  if (plan.probes.size() > texts_->full_names.size()) texts_ = std::make_shared<const PlanTexts>(plan);
  lost_.resize(std::max(lost_.size(), plan.probes.size()));
}

void ValueTaker::event(const usdt::Event& event) {
  if (events_ == Events::handed_on) give({texts_, around_->wall_offset(), &event});
  if (events_ == Events::kept) give({texts_, around_->wall_offset(), nullptr, usdt::OwnedEvent(event)});
}

/// Nobody wants the slowest so far one by one: later ones may be slower.
void ValueTaker::slowest(const usdt::SlowestEvents& events, bool last) {
  if (!last || events_ == Events::unwanted) return;
  for (const usdt::KeptEvent& each : events.events()) give({texts_, each.wall_offset, nullptr, each.event});
}

void ValueTaker::give(usdtc_event&& event) {
  if (events_ == Events::kept) return keep(std::move(event));
  ++events_so_far_;
  on_event_(&event, user_);
}

void ValueTaker::keep(usdtc_event&& event) {
  const std::uint64_t bytes = bytes_of(event);
  if (bytes > most_bytes_ - kept_bytes_) {
    ++lost_[event.event().site().probe.value];
    return;
  }
  kept_.push_back(std::move(event));
  kept_bytes_ += bytes;
  ++events_so_far_;
}

void ValueTaker::table(const usdt::ArrangedTable& table) {
  rows_ = usdtc_rows{texts_, view_, table.table, table.rows};
  rows_->rows.resize(std::min(rows_->rows.size(), view_.top));
}

void ValueTaker::account(const usdt::SessionSummary& summary) {
  summary_ = summary;
  next_account_ = Clock::now() + std::chrono::seconds(1);
}

std::unique_ptr<usdtc_batch> ValueTaker::take(std::size_t limit) {
  auto batch = std::make_unique<usdtc_batch>();
  const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(std::min(limit, kept_.size()));
  for (auto each = kept_.begin(); each != end; ++each) kept_bytes_ -= bytes_of(*each);
  batch->events.assign(std::make_move_iterator(kept_.begin()), std::make_move_iterator(end));
  kept_.erase(kept_.begin(), end);
  return batch;
}

usdt::Result<usdtc_rows*> ValueTaker::rows() const {
  if (texts_ && !view_.question) return invalid("no table was asked for");
  if (!rows_) return usdt::fail(usdt::ErrorKind::not_found, "nobody has looked at the table yet");
  return new usdtc_rows(*rows_);
}

usdt::Result<usdtc_ledger*> ValueTaker::ledger() const {
  if (!summary_) return usdt::fail(usdt::ErrorKind::not_found, "there is no account yet");
  return new usdtc_ledger(*summary_);
}

}  // namespace usdtc
