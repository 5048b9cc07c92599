// SPDX-License-Identifier: BSD-2-Clause
#include <map>

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

}  // namespace

void make_links(Carrying& carrying) {
  const AttachPlan& plan = carrying.sites.plan();
  CarrierPlan& out = carrying.out;
  for (const Index<AttachGroup> group : plan.groups.indices()) {
    std::map<Index<PlannedProgram>, PlannedLink> by_program;
    for (const Index<PlannedSite> site : plan.groups[group].sites) {
      const Carried& how = carrying.carried[site.value];
      add_site(by_program[how.program], carrying.sites, site, how.cookie);
    }
    for (auto& [program, link] : by_program) {
      link.group = group;
      link.program = program;
      if (const auto partner = out.programs[program].partner) {
        PlannedLink ends = link;
        ends.program = *partner;
        link.ends = out.links.add(std::move(ends));
      }
      out.links.add(std::move(link));
    }
  }
}

}  // namespace usdt::carry
