// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "usdt/elf_file.hpp"
#include "usdt/plan.hpp"
#include "usdt/probe.hpp"

namespace usdt {

/// What a hit at an attached site costs on one kernel (SiteClass says what the bytes are, whatever the kernel).
enum class CostClass : std::uint8_t {
  trap,         ///< a breakpoint; the nop below it is emulated
  optimised,    ///< the kernel puts a call in place of the breakpoint, the cheapest kind
  emulated,     ///< a breakpoint; the instruction below it (push, jmp, call) is emulated, about as cheap as a nop
  single_step,  ///< a breakpoint; the instruction runs out of line under single-step, about 10 times a nop
  refused,      ///< planning leaves the site out
};
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

}  // namespace usdt
