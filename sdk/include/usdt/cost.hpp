// SPDX-License-Identifier: BSD-2-Clause
// The cost of a hit of a site on a given kernel, before anything is attached: site_cost() judges one site, to_string()
// prints the class.
//     print(usdt::site_cost(site, file, usdt::kernel_facts()).text);
// Threads: pure functions of their arguments, for any thread; nothing is attached.
#pragma once

#include <string>
#include <string_view>

#include "usdt/elf_file.hpp"
#include "usdt/kernel_facts.hpp"
#include "usdt/plan.hpp"
#include "usdt/probe.hpp"

namespace usdt {
inline namespace v1 {

/// Returns "trap", "optimised", "emulated", "single-step" or "refused".
[[nodiscard]] std::string_view to_string(CostClass cost) noexcept;

/// Describes the cost of a hit of one site.
struct SiteCost {
  CostClass cost = CostClass::refused;
  /// A sentence about what the kernel does at a hit, for people; of `refused` the reason that SkippedSite would have.
  std::string text;
};

/// Returns the cost of a hit of `site` in `file` if plan_attach() planned it for this kernel with these options. It
/// means something only for files that the kernel runs (runs_here()).
[[nodiscard]] SiteCost site_cost(const Site& site, const ElfFile& file, const KernelFacts& kernel,
                                 const PlanOptions& options = {});

}  // namespace v1
}  // namespace usdt
