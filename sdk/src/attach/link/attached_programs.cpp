// SPDX-License-Identifier: BSD-2-Clause
#include "link/attached_programs.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "link/missed.hpp"

namespace usdt::backends {

void AttachedPrograms::add_loaded(std::vector<sys::UniqueFd>& programs, Backend attached_by,
                                  const std::vector<Index<PlannedProbe>>& probes) {
  const bool one_each = programs.size() == probes.size();
  for (std::size_t i = 0; i < programs.size(); ++i) {
    served_.push_back({attached_by, one_each ? std::vector{probes[i]} : each_once(probes, 0, probes.size())});
    fds_.push_back(std::move(programs[i]));
  }
  programs.clear();
}

void AttachedPrograms::note(std::size_t number, Backend attached_by, const std::vector<Index<PlannedProbe>>& probes,
                            std::optional<Index<PlannedFile>> file) {
  if (number == served_.size()) served_.push_back({attached_by, {}});
  if (file) served_[number].files.insert(*file);
  std::vector<Index<PlannedProbe>>& known = served_[number].probes;
  known.insert(known.end(), probes.begin(), probes.end());
  known = each_once(known, 0, known.size());
}

void AttachedPrograms::append(AttachedPrograms&& part, const PartPlace& place) {
  for (Served& served : part.served_) move_to(place, served);
  std::ranges::move(part.fds_, std::back_inserter(fds_));
  std::ranges::move(part.served_, std::back_inserter(served_));
  part.fds_.clear();
  part.served_.clear();
}

/// The first is kept: it tells whether the kernel counts at all.
void AttachedPrograms::close_those_of(const std::set<Index<PlannedFile>>& files) {
  for (std::size_t i = fds_.size(); i-- > 1;) {
    const Served& served = served_[i];
    if (served.files.empty() || !std::ranges::includes(files, served.files)) continue;
    if (const auto count = recursion_misses(fds_[i].get()); count.value_or(0) > 0)
      missed_before_.push_back({served.backend, count, served.probes});
    fds_.erase(fds_.begin() + static_cast<std::ptrdiff_t>(i));
    served_.erase(served_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::vector<MissedHits> AttachedPrograms::missed() const {
  std::vector<MissedHits> out = missed_before_;
  for (std::size_t i = 0; i < fds_.size(); ++i)
    out.push_back({served_[i].backend, recursion_misses(fds_[i].get()), served_[i].probes});
  return out;
}

}  // namespace usdt::backends
