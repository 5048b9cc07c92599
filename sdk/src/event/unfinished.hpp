// SPDX-License-Identifier: BSD-2-Clause
// Tells what became of beginnings that had no end: some are open, some were abandoned. Private to event/.
#pragma once

#include <cstdint>
#include <vector>

#include "event/open_calls.hpp"
#include "event/site_counts.hpp"
#include "event/thread_ends.hpp"

namespace usdt::event {

/// The beginnings of sites that were loaded together.
class Unfinished {
 public:
  /// Serves a plan that keeps no beginnings.
  Unfinished() = default;
  /// `first`: the number in the trace of the plan's first site.
  Unfinished(OpenCalls open, const AttachPlan& plan, std::uint32_t first);

  [[nodiscard]] bool any() const noexcept { return open_.any(); }
  /// Looks which are open, visits their records (`visit` may be empty), and takes those out that cannot end any more.
  void look(const SiteCounts& counts, const ThreadEnds& ends, const OpenCalls::Visit& visit = {});
  /// The last look: nothing is attached any more.
  void finish(const SiteCounts& counts, const ThreadEnds& ends);
  /// Whether so many have no end as leave little room for others, if they were open: time for a look.
  [[nodiscard]] bool may_be_crowded(const SiteCounts& counts) const;

  /// Returns how many that began at a site (its number in the plan) were known to be abandoned at the last look: their
  /// threads have ended or have become other programs, or the stack was left without a return; or there was no room for
  /// more. Exact where nothing is attached any more.
  [[nodiscard]] std::uint64_t abandoned(std::uint32_t site) const noexcept;
  /// How many of these may have been given up for want of room.
  [[nodiscard]] std::uint64_t given_up(std::uint32_t site) const noexcept;
  [[nodiscard]] std::uint32_t room() const noexcept { return open_.room(); }

 private:
  struct Site {
    std::uint32_t number = 0;
    std::uint64_t abandoned = 0;
    std::uint64_t left = 0;  ///< of these, by threads that have ended or executed another program
  };
  [[nodiscard]] Site* find(std::uint32_t number) noexcept;
  [[nodiscard]] const Site* find(std::uint32_t number) const noexcept;

  OpenCalls open_ = {};
  std::vector<Site> sites_ = {};  ///< whose beginnings wait, by their numbers
  std::uint32_t first_ = 0;
  bool crowded_ = false;  ///< there was a time when there was hardly any room
};

}  // namespace usdt::event
