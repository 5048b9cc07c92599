// SPDX-License-Identifier: BSD-2-Clause
#include "listing.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace usdt_list {

SiteDecoder::SiteDecoder(const usdt::ProbeFile& file, Costs costs)
    : file_(file), decoder_(*file.elf), costs_(costs == Costs::yes && usdt::runs_here(file.elf->machine())) {
  if (costs_) kernel_.nops = usdt::nop_optimisation();
}

WrittenArgs SiteDecoder::args(const usdt::Site& site) const {
  WrittenArgs args{.parsed = decoder_.parse(site.args_text), .decoded = {}};
  args.decoded = decoder_.decode(args.parsed);
  if (site.description) usdt::describe(args.decoded, *site.description);
  return args;
}

const DescribedArgs& SiteDecoder::describe(const usdt::Site& site) const {
  const auto [known, fresh] = by_text_.try_emplace(ArgsKey(site));
  if (fresh) {
    const std::vector<usdt::Arg> args = decoder_.decode(site);
    const auto unreadable = std::ranges::count_if(args, [](const usdt::Arg& arg) { return !arg.readable(); });
    known->second = {usdt::signature_text(args), static_cast<std::size_t>(unreadable)};
  }
  return known->second;
}

std::optional<usdt::SiteCost> SiteDecoder::cost(const usdt::Site& site) const {
  if (!costs_) return std::nullopt;
  return usdt::site_cost(site, *file_.elf, kernel_);
}

std::vector<ListedProbe> group_probes(const usdt::ProbeFile& file, const SiteDecoder& decoder) {
  std::map<std::pair<std::string_view, std::string_view>, ListedProbe> groups;
  for (const usdt::Site& site : file.sites)
    groups[{site.provider, site.name}].sites.push_back({&site, &decoder.describe(site), decoder.cost(site)});
  std::vector<ListedProbe> out;
  out.reserve(groups.size());
  for (auto& [key, probe] : groups) {
    probe.name = usdt::probe_name(file.target, key.first, key.second);
    out.push_back(std::move(probe));
  }
  return out;
}

}  // namespace usdt_list
