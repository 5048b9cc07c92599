// SPDX-License-Identifier: BSD-2-Clause
#include "event/count_probes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "event/kernel_counts.hpp"

namespace usdt::event {
namespace {

/// A counter of several probes tells only, if it is 0, that none of them missed any.
void add_missed(const std::vector<MissedHits>& counters, std::vector<ProbeCounts>& all) {
  for (const MissedHits& counter : counters) {
    if (counter.hits == 0) continue;
    const bool known = counter.hits && counter.probes.size() == 1;
    for (const Index<PlannedProbe> probe : counter.probes) {
      std::optional<std::uint64_t>& missed = all[probe.value].missed;
      missed = known && missed ? std::optional(*missed + *counter.hits) : std::nullopt;
    }
  }
}

/// Says what became of `rest`, which began and did not end.
void share_unfinished(std::uint64_t rest, ProbeCounts& probe) {
  probe.abandoned = std::min(probe.abandoned, rest);
  probe.given_up = std::min(probe.given_up, probe.abandoned);
  probe.unfinished = rest - probe.abandoned;
}

/// Says what became of the ends of spans, one of `ended` being a hit that was paired.
void add_pairs(const AttachPlan& plan, const Part& part, const std::vector<std::uint64_t>& ended,
               std::vector<ProbeCounts>& all) {
  std::vector<bool> seen(all.size());
  for (std::uint32_t site = 0; site < part.sites; ++site) {
    const std::uint32_t number = plan.sites[Index<PlannedSite>(part.first_site + site)].probe.value;
    if (seen[number]) continue;
    seen[number] = true;
    ProbeCounts& probe = all[number];
    const std::uint64_t rest =
        probe.hits - std::min(probe.hits, ended[number] + probe.unpaired + probe.calls_full + probe.not_sampled);
    if (site < part.begins) {
      probe.paired = ended[number];
      share_unfinished(rest, probe);
    } else {
      probe.unmatched = rest;
    }
  }
}

/// Calls that began and did not end, where ends are counted.
void add_unfinished_calls(const AttachPlan& plan, const Parts& parts, const std::vector<std::uint64_t>& ended,
                          std::vector<ProbeCounts>& all) {
  for (const AttachGroup& group : plan.groups) {
    if (group.moment != Moment::both) continue;
    for (const Index<PlannedSite> site : group.sites) {
      if (!parts.of_site(site.value).ends_count) continue;
      const std::uint32_t number = plan.sites[site].probe.value;
      share_unfinished(all[number].hits - ended[number] - all[number].calls_full - all[number].not_sampled,
                       all[number]);
    }
  }
}

void add_estimates(const AttachPlan& plan, const std::vector<double>& hits, std::vector<ProbeCounts>& all) {
  std::vector<double> sums(all.size());
  for (std::uint32_t site = 0; site < hits.size(); ++site)
    sums[plan.sites[Index<PlannedSite>(site)].probe.value] += hits[site];
  for (std::size_t i = 0; i < all.size(); ++i) all[i].estimated = static_cast<std::uint64_t>(std::llround(sums[i]));
}

}  // namespace

std::vector<ProbeCounts> count_probes(std::vector<ProbeCounts> all, const AttachPlan& plan, Parts& parts,
                                      const std::vector<MissedHits>& missed, const OverheadGuard* guard) {
  add_missed(missed, all);
  std::vector<std::uint64_t> ended(all.size());
  for (Part& part : parts.all()) {
    part.unfinished.look(part.counts, parts.ends());
    for (std::uint32_t site = 0; site < part.sites; ++site) {
      const std::uint32_t number = plan.sites[Index<PlannedSite>(part.first_site + site)].probe.value;
      const usdt_site_stats counted = part.counts.of(site);
      add_kernel_counts(all[number], counted);
      all[number].abandoned += part.unfinished.abandoned(site);
      all[number].given_up += part.unfinished.given_up(site);
      ended[number] += counted.ended;
    }
  }
  if (guard) add_estimates(plan, guard->hits(), all);
  if (plan.spans)
    for (const Part& part : parts.all()) add_pairs(plan, part, ended, all);
  add_unfinished_calls(plan, parts, ended, all);
  if (!plan.table) return all;
  for (ProbeCounts& probe : all)
    probe.delivered = probe.hits - sum_counts(probe, {CountRole::lost, CountRole::left_out, CountRole::pairing});
  return all;
}

}  // namespace usdt::event
