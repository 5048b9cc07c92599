// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/cost.hpp"

#include <fmt/format.h>

#include "plan/placement.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// The leading nop of a pair has the breakpoint: why not the long nop?
std::string_view why_leading_nop(SiteClass pair, NopOptimisation nops) {
  if (pair == SiteClass::nop_nop10 && nops == NopOptimisation::nop10) return "the nop10 straddles a page";
  if (pair == SiteClass::nop_nop10) return "this kernel does not optimise nop10";
  return nops == NopOptimisation::nop5 ? "the call this kernel makes of a nop5 overwrites the red zone"
                                       : "this kernel does not optimise nop5";
}

/// Kernels without the optimisation step over nops of the 0f 1f kind: branch_setup_xol_ops() of 6.12 knows 90 only,
/// 6.18 has insn_is_nop().
bool is_stepped_nop(const plan::Placement& placement, NopOptimisation nops) {
  return nops == NopOptimisation::none && placement.long_nop;
}

SiteCost cost_of(const plan::Placement& placement, const Site& site, NopOptimisation nops) {
  if (placement.optimised) return {CostClass::optimised, "a call in place of a breakpoint"};
  if (is_stepped_nop(placement, nops)) {
    return {CostClass::single_step,
            "breakpoint and single step, about 10 times a nop: this kernel emulates no long nop"};
  }
  switch (site.site_class) {
    case SiteClass::nop:
    case SiteClass::nop5:
    case SiteClass::nop10:
      return {CostClass::trap, "breakpoint, nop emulated"};
    case SiteClass::nop_nop5:
    case SiteClass::nop_nop10:
      return {CostClass::trap,
              fmt::format("breakpoint on the leading nop: {}", why_leading_nop(site.site_class, nops))};
    case SiteClass::emulated:
      return {CostClass::emulated, "breakpoint, instruction emulated"};
    case SiteClass::single_step:
      return {CostClass::single_step, "breakpoint and single step, about 10 times a nop"};
    case SiteClass::unknown:
      break;
  }
  return {CostClass::refused, "the file holds no instruction there"};
}

}  // namespace

std::string_view to_string(CostClass cost) noexcept {
  switch (cost) {
    case CostClass::trap:
      return "trap";
    case CostClass::optimised:
      return "optimised";
    case CostClass::emulated:
      return "emulated";
    case CostClass::single_step:
      return "single-step";
    case CostClass::refused:
      break;
  }
  return "refused";
}

SiteCost site_cost(const Site& site, const ElfFile& file, const KernelFacts& kernel, const PlanOptions& options) {
  auto placement = plan::place(site, file, kernel, options);
  if (!placement) return {CostClass::refused, std::move(placement.error())};
  return cost_of(*placement, site, kernel.nops);
}

}  // namespace v1
}  // namespace usdt
