// SPDX-License-Identifier: BSD-2-Clause
#include "session/live_filter.hpp"

#include <utility>

#include "session/option_names.hpp"
#include "session/split_condition.hpp"

namespace usdt::session {

Result<std::unique_ptr<LiveFilter>> LiveFilter::make(const Question& question, const Tracer& tracer) {
  const auto condition = split_condition(question.where).of_events;
  if (!condition || question.view.in_flight) return nullptr;
  std::unique_ptr<LiveFilter> made(new LiveFilter(tracer));
  auto filter = EventFilter::make(condition, made->plan_.plan());
  if (!filter) return fail(filter.error().within(name_options("--where", question.option_prefix)));
  made->filter_ = std::move(*filter);
  return made;
}

bool LiveFilter::passes(const Event& event) {
  plan_.grow();
  const auto answer = (*filter_)(event);
  if (answer.value_or(false)) return true;
  ++(answer ? left_out(event).rejected : left_out(event).undecided);
  return false;
}

void LiveFilter::discard(const Event& event) {
  if (passes(event)) ++left_out(event).discarded;
}

LiveFilter::LeftOut& LiveFilter::left_out(const Event& event) {
  const std::uint32_t probe = account_of(plan_.plan(), event.site().probe.value);
  if (left_out_.size() <= probe) left_out_.resize(plan_.plan().probes.size());
  return left_out_[probe];
}

void LiveFilter::account_for(Index<PlannedProbe> probe, Account& account) const {
  if (probe.value >= left_out_.size()) return;
  const LeftOut& left_out = left_out_[probe.value];
  account.rejected += left_out.rejected;
  account.undecided += left_out.undecided;
  account.discarded += left_out.discarded;
  account.delivered -= left_out.rejected + left_out.undecided + left_out.discarded;
}

}  // namespace usdt::session
