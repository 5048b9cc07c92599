// SPDX-License-Identifier: BSD-2-Clause
#include "listing.hpp"

#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "common/signature.hpp"

namespace usdt_list {
namespace {

/// Sites share a few texts; views are of the sites' own strings.
class Decoder {
 public:
  explicit Decoder(const usdt::ElfFile& file) : decoder_(file) {}

  std::shared_ptr<const ListedArgs> decode(const usdt::Site& site) {
    auto& known = by_text_[site.args_text];
    if (known == nullptr) {
      ListedArgs made{decoder_.decode(site), {}};
      made.signature = usdt::tools::signature(made.args);
      known = std::make_shared<const ListedArgs>(std::move(made));
    }
    return known;
  }

 private:
  usdt::ArgDecoder decoder_;
  std::unordered_map<std::string_view, std::shared_ptr<const ListedArgs>> by_text_;
};

}  // namespace

std::vector<ListedSite> decode_sites(const usdt::ProbeFile& file, Costs costs) {
  Decoder decoder(*file.elf);
  const bool with_costs = costs == Costs::yes && usdt::runs_here(file.elf->machine());
  usdt::KernelFacts kernel;
  if (with_costs) kernel.nops = usdt::nop_optimisation();
  std::vector<ListedSite> out;
  out.reserve(file.sites.size());
  for (const usdt::Site& site : file.sites) {
    ListedSite& listed = out.emplace_back(ListedSite{&site, decoder.decode(site), std::nullopt});
    if (with_costs) listed.cost = usdt::site_cost(site, *file.elf, kernel);
  }
  return out;
}

std::vector<ListedProbe> group_probes(const usdt::ProbeFile& file, Costs costs) {
  std::map<std::pair<std::string_view, std::string_view>, ListedProbe> groups;
  for (ListedSite& listed : decode_sites(file, costs)) {
    const usdt::Site& site = *listed.site;
    groups[{site.provider, site.name}].sites.push_back(std::move(listed));
  }
  std::vector<ListedProbe> out;
  out.reserve(groups.size());
  for (auto& [key, probe] : groups) {
    probe.name = usdt::probe_name(file.target, key.first, key.second);
    out.push_back(std::move(probe));
  }
  return out;
}

}  // namespace usdt_list
