// SPDX-License-Identifier: BSD-2-Clause
#include "listing.hpp"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>

namespace usdt_list {
namespace {

/// Characters that a pattern takes for a glob are quoted, so that the name means itself.
std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == '\\' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string paste_path(const usdt::TargetFile& file) { return file.access.string(); }

std::vector<ListedSite> decode_sites(const usdt::ProbeFile& file) {
  const usdt::ArgDecoder decoder(*file.elf);
  std::vector<ListedSite> out;
  out.reserve(file.sites.size());
  for (const usdt::Site& site : file.sites) out.push_back({&site, decoder.decode(site)});
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
    probe.name = fmt::format("usdt:{}:{}:{}", paste_path(file.target), quoted(key.first), quoted(key.second));
    out.push_back(std::move(probe));
  }
  return out;
}

}  // namespace usdt_list
