// SPDX-License-Identifier: BSD-2-Clause
#include "event/parts.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace usdt::event {

const Part& Parts::of_site(std::uint32_t site) const noexcept {
  if (all_.size() == 1) return all_.front();
  return *std::prev(std::ranges::upper_bound(all_, site, {}, &Part::first_site));
}

Part& Parts::add(Part addition, const AttachPlan& plan, std::uint32_t first_file) {
  addition.files_left = std::max(static_cast<std::uint32_t>(plan.files.size()), 1U);
  addition.first_file = first_file;
  ++additions_;
  return all_.emplace_back(std::move(addition));
}

void Parts::remove_last() {
  all_.pop_back();
  --additions_;
}

void Parts::note_let_go(Index<PlannedFile> file) {
  Part& part = *std::prev(std::ranges::upper_bound(all_, file.value, {}, &Part::first_file));
  if (&part == &all_.front() || --part.files_left > 0) return;  // the first one's maps are everybody's
  part.unfinished.finish(part.counts, ends_);
  part.counts.finish();
  --additions_;
}

void Parts::make_room() {
  // Not even the clock is looked at where there is no need: it may be a system call, and that be traced.
  if (std::ranges::none_of(all_, [](const Part& part) { return part.unfinished.any(); })) return;
  constexpr std::chrono::milliseconds pause{100};
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return;
  for (Part& part : all_)
    if (part.unfinished.may_be_crowded(part.counts)) part.unfinished.look(part.counts, ends_);
  constexpr int pause_of_work = 2;
  const auto after = std::chrono::steady_clock::now();
  next_look_ = after + std::max<std::chrono::nanoseconds>(pause, pause_of_work * (after - now));
}

}  // namespace usdt::event
