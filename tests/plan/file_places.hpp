// SPDX-License-Identifier: BSD-2-Clause
// Where the sites of a plan of files are, site by site.
#pragma once

#include <cstdint>
#include <vector>

#include "usdt/plan.hpp"

namespace usdt::test {

inline const FilePlace& place_of(const AttachPlan& plan, Index<PlannedSite> site) {
  return std::get<FilePlace>(plan.sites[site].point);
}

inline std::vector<std::uint64_t> offsets_of(const AttachPlan& plan) {
  std::vector<std::uint64_t> all;
  for (const Index<PlannedSite> site : plan.sites.indices()) all.push_back(place_of(plan, site).offset.value);
  return all;
}

inline std::vector<std::uint64_t> semaphores_of(const AttachPlan& plan) {
  std::vector<std::uint64_t> all;
  for (const Index<PlannedSite> site : plan.sites.indices()) all.push_back(place_of(plan, site).semaphore);
  return all;
}

}  // namespace usdt::test
