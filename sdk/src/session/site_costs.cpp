// SPDX-License-Identifier: BSD-2-Clause
#include "session/site_costs.hpp"

#include "usdt/machine.hpp"
#include "usdt/select.hpp"

namespace usdt::session {
namespace {

/// A function's first instruction, or its RET instructions, which have a breakpoint.
SiteCost cost_of(const FunctionPoint& point, Machine machine) {
  const SiteClass entry = point.site_class;
  if (!point.rets.empty() && steps_returns(machine))
    return {CostClass::single_step,
            "breakpoint and single step at each RET instruction, about 10 times a nop (--no-ret-probes: the kernel's)"};
  if (entry == SiteClass::unknown) return {CostClass::trap, "breakpoint"};
  if (entry == SiteClass::single_step)
    return {CostClass::single_step, "breakpoint and single step, about 10 times a nop"};
  const bool emulated = entry == SiteClass::emulated;
  return {emulated ? CostClass::emulated : CostClass::trap,
          emulated ? "breakpoint, instruction emulated" : "breakpoint, nop emulated"};
}

/// Medians of docs/results/hit.md, ns: what the kernel does at a hit, and the program's parts.
namespace measured {
constexpr unsigned kTrap = 860, kCall = 710, kEmulated = 970, kSingleStep = 12'400;
constexpr unsigned kProgram = 60, kValue = 5, kRead = 100, kRecord = 180;
}  // namespace measured

unsigned measured_cost(CostClass cost) {
  switch (cost) {
    case CostClass::trap:
      return measured::kTrap;
    case CostClass::optimised:
      return measured::kCall;
    case CostClass::emulated:
      return measured::kEmulated;
    case CostClass::single_step:
      return measured::kSingleStep;
    case CostClass::refused:
      break;
  }
  return 0;
}

/// Two digits are all that is known.
unsigned rounded(unsigned ns) {
  unsigned unit = 1;
  while (ns / unit >= 100) unit *= 10;
  return (ns + unit / 2) / unit * unit;
}

}  // namespace

SiteCosts find_costs(const FoundPoints& found, const KernelFacts& kernel, const Question& question) {
  SiteCosts costs;
  PlanOptions options;
  options.allow_unsafe_nop5 = question.attaching.allow_unsafe_nop5;
  const auto add = [&](const Selection& selection) {
    for (const ProbeFile& file : selection.files) {
      for (const Site& site : file.sites)
        costs.try_emplace({file.elf.get(), site.pc.value}, site_cost(site, *file.elf, kernel, options));
      for (const FunctionPoint& point : file.functions)
        costs.try_emplace({file.elf.get(), point.pc.value}, cost_of(point, file.elf->machine()));
    }
  };
  add(found.selection);
  if (found.ends) add(*found.ends);
  return costs;
}

unsigned estimate_hit(CostClass cost, const std::vector<ExplainedValue>& values, bool recorded) {
  unsigned ns = measured_cost(cost) + measured::kProgram;
  for (const ExplainedValue& value : values) ns += measured::kValue + value.reads * measured::kRead;
  return rounded(ns + (recorded ? measured::kRecord : 0));
}

}  // namespace usdt::session
