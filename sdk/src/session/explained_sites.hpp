// SPDX-License-Identifier: BSD-2-Clause
// Sites of a plan as --explain shows them: those that are alike together, with their values, questions and cost.
#pragma once

#include <vector>

#include "session/site_costs.hpp"
#include "usdt/explanation.hpp"

namespace usdt::session {

[[nodiscard]] std::vector<ExplainedSites> explain_sites(const Question& question, const AttachPlan& plan,
                                                        const SiteCosts& costs);

}  // namespace usdt::session
