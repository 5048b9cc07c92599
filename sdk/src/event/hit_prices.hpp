// SPDX-License-Identifier: BSD-2-Clause
// Measures what hits of a plan's sites cost the programs that pass them. Private to event/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "features/trap_cost.hpp"
#include "usdt/bpf_object.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"

namespace usdt::event {

/// Traps as they were measured on this machine when the trace began, by what each site's instruction is, and the
/// programs' time as the kernel's clocks have it; where it has none, or they may not be used, by a rule of thumb.
class HitPrices {
 public:
  /// Measures the sites of the plan for which `object` is loaded, where `program` runs. Takes some 100 ms for each kind
  /// of instruction. Errors: those of features::trap_cost().
  [[nodiscard]] static Result<HitPrices> measure(const LoadedObject& object, const std::string& program);

  /// Returns the price of a hit of that site, ns, without the program.
  [[nodiscard]] double of_trap(std::uint32_t site) const noexcept { return of_traps_[site]; }
  /// Returns what the programs took so far, ns, in `hits` hits.
  [[nodiscard]] double of_programs(std::uint64_t hits) const;
  /// Returns whether the programs are measured, too.
  [[nodiscard]] bool has_clocks() const noexcept { return clocks_.run(); }

 private:
  HitPrices() = default;

  features::ProgramClocks clocks_;
  std::vector<double> of_traps_;
  std::vector<int> programs_;  ///< descriptors, which are the object's
};

}  // namespace usdt::event
