// SPDX-License-Identifier: BSD-2-Clause
// Plans with fewer values, for programs that the verifier finds too large. Private to the library.
#pragma once

#include <optional>
#include <set>

#include "usdt/plan.hpp"

namespace usdt::plan {

/// `plan` with half of the values that are read at the sites of `specs`: those behind the others are left out, members
/// of members before members. What is passed itself is kept, and what is asked about (PlanOptions::where and the like).
/// shortened_sites() tells the sites. Nothing: there is nothing to leave out, or the plan is of spans.
[[nodiscard]] std::optional<AttachPlan> with_fewer_values(const AttachPlan& plan,
                                                          const std::set<Index<EncodedSpec>>& specs);

}  // namespace usdt::plan
