// SPDX-License-Identifier: BSD-2-Clause
// One scanned file as it will be shown: its sites decoded, and grouped into probes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt_list {

/// A site with its arguments, and what a hit costs on the running kernel (nothing if that does not run such files).
struct ListedSite {
  const usdt::Site* site = nullptr;
  std::vector<usdt::Arg> args;
  std::optional<usdt::SiteCost> cost;
};

/// All sites of one provider:name of one file.
struct ListedProbe {
  std::string name;  ///< "usdt:PATH:PROVIDER:NAME": pastes into usdt-trace
  std::vector<ListedSite> sites;
};

/// The sites of `file` in file order. `file` must outlive the result.
[[nodiscard]] std::vector<ListedSite> decode_sites(const usdt::ProbeFile& file);
/// The same grouped, sorted by provider and name.
[[nodiscard]] std::vector<ListedProbe> group_probes(const usdt::ProbeFile& file);

}  // namespace usdt_list
