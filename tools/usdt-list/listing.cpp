// SPDX-License-Identifier: BSD-2-Clause
#include "listing.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "common/signature.hpp"

namespace usdt_list {

SiteDecoder::SiteDecoder(const usdt::ProbeFile& file)
    : file_(file), decoder_(*file.elf), runs_(usdt::runs_here(file.elf->machine())) {
  kernel_.nops = usdt::nop_optimisation();
}

std::optional<usdt::SiteCost> SiteDecoder::cost(const usdt::Site& site) const {
  if (!runs_) return std::nullopt;
  return usdt::site_cost(site, *file_.elf, kernel_);
}

std::vector<ListedProbe> group_probes(const usdt::ProbeFile& file, const SiteDecoder& decoder) {
  std::map<std::pair<std::string_view, std::string_view>, ListedProbe> groups;
  for (const usdt::Site& site : file.sites) {
    const std::vector<usdt::Arg> args = decoder.args(site);
    const auto unreadable = std::ranges::count_if(args, [](const usdt::Arg& arg) { return !arg.readable; });
    groups[{site.provider, site.name}].sites.push_back(
        {&site, usdt::tools::signature(args), static_cast<std::size_t>(unreadable), decoder.cost(site)});
  }
  std::vector<ListedProbe> out;
  for (auto& [key, probe] : groups) {
    probe.name = usdt::probe_name(file.target, key.first, key.second);
    out.push_back(std::move(probe));
  }
  return out;
}

}  // namespace usdt_list
