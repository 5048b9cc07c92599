// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <map>
#include <vector>

#include "carry/carrying.hpp"

namespace usdt::carry {
namespace {

void add_site(PlannedLink& link, const CarrierSites& sites, Index<PlannedSite> site, std::uint64_t cookie) {
  if (const auto* place = std::get_if<FilePlace>(&sites.plan().sites[site].point))
    link.ref_ctr_offsets.push_back(place->semaphore);
  link.offsets.push_back(sites.address_of(site));
  link.cookies.push_back(cookie);
  link.sites.push_back(site);
}

/// A link at the RET instructions of the sites of `link`, which has everything else.
PlannedLink at_rets(const PlannedLink& link, const AttachPlan& plan) {
  PlannedLink ends{.group = link.group, .program = link.program};
  for (std::size_t i = 0; i < link.sites.size(); ++i) {
    for (const FileOffset ret : std::get<FilePlace>(plan.sites[link.sites[i]].point).rets) {
      ends.offsets.push_back(ret.value);
      ends.ref_ctr_offsets.push_back(link.ref_ctr_offsets[i]);
      ends.cookies.push_back(link.cookies[i]);
      ends.sites.push_back(link.sites[i]);
    }
  }
  return ends;
}

/// Returns the groups in the order in which they are attached. Where spans end comes before where they begin: a span
/// whose end nobody sees yet would stay in flight, as what is never freed does.
std::vector<Index<AttachGroup>> in_order(const AttachPlan& plan) {
  std::vector<Index<AttachGroup>> groups;
  for (const Index<AttachGroup> group : plan.groups.indices()) groups.push_back(group);
  if (!plan.spans) return groups;
  std::stable_partition(groups.begin(), groups.end(), [&](Index<AttachGroup> group) {
    return std::ranges::all_of(plan.groups[group].sites,
                               [&](Index<PlannedSite> site) { return site.value >= plan.spans->begins; });
  });
  return groups;
}

}  // namespace

void make_links(Carrying& carrying) {
  const AttachPlan& plan = carrying.sites.plan();
  CarrierPlan& out = carrying.out;
  for (const Index<AttachGroup> group : in_order(plan)) {
    std::map<Index<PlannedProgram>, PlannedLink> by_program;
    for (const Index<PlannedSite> site : plan.groups[group].sites) {
      const Carried& how = carrying.carried[site.value];
      add_site(by_program[how.program], carrying.sites, site, how.cookie);
    }
    for (auto& [program, link] : by_program) {
      link.group = group;
      link.program = program;
      const bool by_rets = plan.groups[group].returns != ReturnBy::probe;
      if (by_rets && plan.groups[group].moment == Moment::exit) link = at_rets(link, plan);
      if (const auto partner = out.programs[program].partner) {
        PlannedLink ends = by_rets ? at_rets(link, plan) : link;
        ends.program = *partner;
        link.ends = out.links.add(std::move(ends));
      }
      out.links.add(std::move(link));
    }
  }
}

}  // namespace usdt::carry
