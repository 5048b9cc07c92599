// SPDX-License-Identifier: BSD-2-Clause
// Says what became of the hits of each probe. Private to event/.
#pragma once

#include <vector>

#include "event/overhead_guard.hpp"
#include "event/parts.hpp"
#include "usdt/counts.hpp"
#include "usdt/link.hpp"
#include "usdt/plan.hpp"

namespace usdt::event {

/// Returns the ledger of a trace of `plan`: what was handed over or discarded so far, what the kernel counted in each
/// part, and what no program was run for. `guard` estimates hits of the time when it looked at none; null: there is
/// none.
[[nodiscard]] std::vector<ProbeCounts> count_probes(std::vector<ProbeCounts> handed_over, const AttachPlan& plan,
                                                    Parts& parts, const std::vector<MissedHits>& missed,
                                                    const OverheadGuard* guard);

}  // namespace usdt::event
