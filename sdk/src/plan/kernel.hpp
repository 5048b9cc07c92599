// SPDX-License-Identifier: BSD-2-Clause
// Kernel functions and raw tracepoints into the plan. Private to plan/.
#pragma once

#include "plan/spec_table.hpp"
#include "plan/values.hpp"
#include "usdt/plan.hpp"

namespace usdt::plan {

/// How a kind of kernel point is attached.
struct KernelMethod {
  Backend backend = Backend::kprobe_multi;
  bool session = false;  ///< calls: one program at both ends
};
/// The cheapest method that the kernel has, or the one `wanted` is forced to. `functions`: how many are asked for;
/// `multi`: those that take many functions in one link can take this one. Errors: not_supported, invalid_argument
/// (`wanted` is for other kinds).
[[nodiscard]] Result<KernelMethod> choose_method(KernelKind kind, Backend wanted, const KernelAbilities& kernel,
                                                 std::size_t functions, bool multi);

/// Adds the entries of `selection` as sites, what cannot be attached as skipped ones. Errors: as choose_method(), where
/// no function of a kind can be attached.
[[nodiscard]] Result<void> add_kernel(const KernelSelection& selection, const KernelAbilities& kernel,
                                      const PlanOptions& options, AttachPlan& plan, SpecTable& specs,
                                      ValueAdder& values);

}  // namespace usdt::plan
