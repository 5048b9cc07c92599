// SPDX-License-Identifier: BSD-2-Clause
#include "link/served.hpp"

#include <algorithm>

namespace usdt::backends {

std::vector<Index<PlannedProbe>> each_once(const std::vector<Index<PlannedProbe>>& sites, std::size_t first,
                                           std::size_t count) {
  const auto end = std::min(sites.size(), first + count);
  std::vector<Index<PlannedProbe>> probes(sites.begin() + static_cast<std::ptrdiff_t>(std::min(first, end)),
                                          sites.begin() + static_cast<std::ptrdiff_t>(end));
  std::ranges::sort(probes);
  probes.erase(std::unique(probes.begin(), probes.end()), probes.end());
  return probes;
}

void move_to(const PartPlace& place, Served& served) {
  for (Index<PlannedProbe>& probe : served.probes) probe.value += place.probes;
  std::set<Index<PlannedFile>> moved;
  for (const Index<PlannedFile> file : served.files) moved.emplace(file.value + place.files);
  served.files = std::move(moved);
}

void AttachedSites::add(std::size_t sites, Backend backend, std::optional<Index<PlannedFile>> file) {
  all_ += sites;
  by_backend_[backend] += sites;
  if (file) of_file_[{*file, backend}] += sites;
}

void AttachedSites::append(const AttachedSites& part, const PartPlace& place) {
  all_ += part.all_;
  for (const auto& [backend, sites] : part.by_backend_) by_backend_[backend] += sites;
  for (const auto& [of, sites] : part.of_file_)
    of_file_[{Index<PlannedFile>(of.first.value + place.files), of.second}] += sites;
}

std::size_t AttachedSites::take(const std::set<Index<PlannedFile>>& files) {
  std::size_t taken = 0;
  for (auto& [of, sites] : of_file_) {
    if (!files.contains(of.first)) continue;
    taken += sites;
    by_backend_[of.second] -= std::exchange(sites, 0);
  }
  all_ -= taken;
  return taken;
}

}  // namespace usdt::backends
