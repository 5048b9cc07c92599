// SPDX-License-Identifier: BSD-2-Clause
#include "listing.hpp"

#include <map>
#include <string_view>
#include <utility>

namespace usdt_list {
std::vector<ListedSite> decode_sites(const usdt::ProbeFile& file) {
  const usdt::ArgDecoder decoder(*file.elf);
  const bool runs = usdt::runs_here(file.elf->machine());
  const usdt::KernelFacts kernel{.nops = usdt::nop_optimisation(), .abilities = {}};
  std::vector<ListedSite> out;
  out.reserve(file.sites.size());
  for (const usdt::Site& site : file.sites) {
    ListedSite listed{&site, decoder.decode(site), std::nullopt};
    if (runs) listed.cost = usdt::site_cost(site, *file.elf, kernel);
    out.push_back(std::move(listed));
  }
  return out;
}

std::vector<ListedProbe> group_probes(const usdt::ProbeFile& file) {
  std::map<std::pair<std::string_view, std::string_view>, ListedProbe> groups;
  for (ListedSite& listed : decode_sites(file)) {
    const usdt::Site& site = *listed.site;
    groups[{site.provider, site.name}].sites.push_back(std::move(listed));
  }
  std::vector<ListedProbe> out;
  for (auto& [key, probe] : groups) {
    probe.name = usdt::probe_name(file.target, key.first, key.second);
    out.push_back(std::move(probe));
  }
  return out;
}

}  // namespace usdt_list
