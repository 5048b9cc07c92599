// SPDX-License-Identifier: BSD-2-Clause
#include "event/unfinished.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace usdt::event {
namespace {

/// How many began and did not end, whatever became of them.
std::uint64_t without_end(const usdt_site_stats& of) {
  const __u64 known = of.ended + of.calls_full + of.not_sampled + of.unpaired;
  return of.hits - std::min(of.hits, known);
}

/// Returns the sites whose beginnings wait in the map.
std::set<std::uint32_t> sites_that_begin(const AttachPlan& plan) {
  std::set<std::uint32_t> sites;
  for (std::uint32_t site = 0; plan.spans && site < plan.spans->begins; ++site) sites.insert(site);
  for (const AttachGroup& group : plan.groups) {
    if (group.moment != Moment::both || (group.session && group.source == USDT_SOURCE_SLOTS)) continue;
    for (const Index<PlannedSite> site : group.sites) sites.insert(site.value);
  }
  return sites;
}

}  // namespace

Unfinished::Unfinished(OpenCalls open, const AttachPlan& plan, std::uint32_t first)
    : open_(std::move(open)), first_(first) {
  if (!any()) return;
  for (const std::uint32_t site : sites_that_begin(plan)) sites_.push_back({.number = site});
}

Unfinished::Site* Unfinished::find(std::uint32_t number) noexcept {
  const auto found = std::ranges::lower_bound(sites_, number, {}, &Site::number);
  return found != sites_.end() && found->number == number ? &*found : nullptr;
}

const Unfinished::Site* Unfinished::find(std::uint32_t number) const noexcept {
  return const_cast<Unfinished*>(this)->find(number);
}

std::uint64_t Unfinished::abandoned(std::uint32_t site) const noexcept {
  const Site* found = find(site);
  return found != nullptr ? found->abandoned : 0;
}

std::uint64_t Unfinished::given_up(std::uint32_t site) const noexcept {
  const Site* found = find(site);
  return found != nullptr && crowded_ ? found->abandoned - found->left : 0;
}

/// While hits come, the numbers are of different moments: what came meanwhile may be among any of them.
void Unfinished::look(const SiteCounts& counts, const ThreadEnds& ends, const OpenCalls::Visit& visit) {
  if (!any()) return;
  std::vector<usdt_site_stats> before;
  for (const Site& site : sites_) before.push_back(counts.of(site.number));
  std::vector<std::uint64_t> open(sites_.size());
  crowded_ |= open_.look(ends, {.open =
                                    [&](const usdt_event& head) {
                                      if (const Site* site = find(head.site - first_))
                                        ++open[static_cast<std::size_t>(site - sites_.data())];
                                    },
                                .left =
                                    [&](const usdt_event& head) {
                                      if (Site* site = find(head.site - first_)) ++site->left;
                                    },
                                .record = visit});
  for (std::size_t n = 0; n < sites_.size(); ++n) {
    const usdt_site_stats after = counts.of(sites_[n].number);
    const std::uint64_t meanwhile = after.hits - before[n].hits + (after.ended - before[n].ended);
    const std::uint64_t without = without_end(before[n]);
    const std::uint64_t least = without - std::min(without, open[n] + meanwhile);
    sites_[n].abandoned = std::max({sites_[n].abandoned, sites_[n].left, least});
  }
}

void Unfinished::finish(const SiteCounts& counts, const ThreadEnds& ends) {
  look(counts, ends);
  open_ = {};
}

bool Unfinished::may_be_crowded(const SiteCounts& counts) const {
  if (!any()) return false;
  std::uint64_t open = 0;
  for (const Site& site : sites_) {
    const std::uint64_t without = without_end(counts.of(site.number));
    open += without - std::min(without, site.abandoned);
  }
  return open > open_.room() / 3;
}

}  // namespace usdt::event
