// SPDX-License-Identifier: BSD-2-Clause
// One scanned file as it will be shown: its sites decoded, and grouped into probes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "usdt/usdt.hpp"

namespace usdt_list {

/// What all sites of a file with one argument text have in common.
struct ListedArgs {
  std::vector<usdt::Arg> args;
  std::string signature;  ///< "(i32, u64)"
};

/// A site with its arguments, and what a hit costs on the running kernel (nothing if that does not run such files, or
/// if nobody asked).
struct ListedSite {
  const usdt::Site* site = nullptr;
  std::shared_ptr<const ListedArgs> decoded;
  std::optional<usdt::SiteCost> cost;
};

/// All sites of one provider:name of one file.
struct ListedProbe {
  std::string name;  ///< "usdt:PATH:PROVIDER:NAME": pastes into usdt-trace
  std::vector<ListedSite> sites;
};

/// Whether costs are wanted: they depend on the kernel, and asking it takes longer than listing a file.
enum class Costs : std::uint8_t { no, yes };
/// The sites of `file` in file order. `file` must outlive the result.
[[nodiscard]] std::vector<ListedSite> decode_sites(const usdt::ProbeFile& file, Costs costs);
/// The same grouped, sorted by provider and name.
[[nodiscard]] std::vector<ListedProbe> group_probes(const usdt::ProbeFile& file, Costs costs);

}  // namespace usdt_list
