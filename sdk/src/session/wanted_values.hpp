// SPDX-License-Identifier: BSD-2-Clause
// The values and texts that the print lists of a question want of each probe.
#pragma once

#include <vector>

#include "usdt/plan.hpp"
#include "usdt/print_list.hpp"
#include "usdt/question.hpp"

namespace usdt::session {

/// The values that the lists want of their probes, in the order of the lists.
struct WantedValues {
  std::vector<TextOptions> texts = {};
  std::vector<ValueOptions> values = {};
};

/// Returns what is asked about beginnings that have no end (View::in_flight), of which events answer it.
[[nodiscard]] std::vector<const Expression*> expressions_of_rows(const Question& question);

[[nodiscard]] WantedValues wanted_by(const PrintChoice& choice, const Question& question);

/// Makes each probe's texts and values those of its list. `options` refer to both others.
void choose_values(const WantedValues& wanted, const PrintChoice& choice, PlanOptions& options);

}  // namespace usdt::session
