// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <string_view>

#include "usdt/elf_file.hpp"
#include "usdt/kernel_facts.hpp"
#include "usdt/plan.hpp"
#include "usdt/probe.hpp"

namespace usdt {
inline namespace v1 {

/// "trap", "optimised", "emulated", "single-step", "refused".
[[nodiscard]] std::string_view to_string(CostClass cost) noexcept;

/// What a hit of one site costs.
struct SiteCost {
  CostClass cost = CostClass::refused;
  /// What the kernel does at a hit, for people; for `refused` the reason of SkippedSite.
  std::string text;
};

/// The cost of `site` of `file`, attached as plan_attach() would with the same kernel and options. Means something
/// only for files that kernel runs (runs_here()).
[[nodiscard]] SiteCost site_cost(const Site& site, const ElfFile& file, const KernelFacts& kernel,
                                 const PlanOptions& options = {});

}  // namespace v1
}  // namespace usdt
