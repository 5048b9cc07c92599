// SPDX-License-Identifier: BSD-2-Clause
// The programs of an attached plan, which are kept for what they count. Private to attach/link.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "link/served.hpp"
#include "sys/unique_fd.hpp"
#include "usdt/link.hpp"

namespace usdt::backends {

/// Each program that was attached, once; they stay open when they are detached.
class AttachedPrograms {
 public:
  [[nodiscard]] bool none() const noexcept { return fds_.empty(); }
  /// Returns the number that the next one gets.
  [[nodiscard]] std::size_t next() const noexcept { return fds_.size(); }

  /// Takes over programs that were loaded for one function each, or one for all `probes`.
  void add_loaded(std::vector<sys::UniqueFd>& programs, Backend attached_by,
                  const std::vector<Index<PlannedProbe>>& probes);
  /// Notes that a program of the object itself, which has this number or is about to be added, is attached to `probes`,
  /// or to sites of `file`, too.
  void note(std::size_t number, Backend attached_by, const std::vector<Index<PlannedProbe>>& probes,
            std::optional<Index<PlannedFile>> file);
  void add(sys::UniqueFd program) { fds_.push_back(std::move(program)); }
  /// Takes over the programs of a part of the plan.
  void append(AttachedPrograms&& part, const PartPlace& place);
  /// Closes the programs that ran at sites of these files alone. What they missed stays known.
  void close_those_of(const std::set<Index<PlannedFile>>& files);

  /// Returns what they missed, those that are closed first.
  [[nodiscard]] std::vector<MissedHits> missed() const;

 private:
  std::vector<sys::UniqueFd> fds_;
  std::vector<Served> served_;             ///< parallel to fds_
  std::vector<MissedHits> missed_before_;  ///< by programs that were closed
};

}  // namespace usdt::backends
