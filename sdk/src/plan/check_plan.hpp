// SPDX-License-Identifier: BSD-2-Clause
// What is wrong with a plan as a whole, and what is done to it as a whole. Private to plan/.
#pragma once

#include "usdt/plan.hpp"

namespace usdt::plan {

/// Errors: invalid_argument (text is asked for of an argument that none of the sites has).
[[nodiscard]] Result<void> check_texts(const AttachPlan& plan, const TextOptions& texts);
/// Errors: invalid_argument (how long a hit took is asked, which is known of calls alone).
[[nodiscard]] Result<void> check_durations(const AttachPlan& plan);
/// Words for what is the same at all hits of a site give way to that: questions in the kernel are of sites alike.
/// Errors: limit (more questions than programs are loaded for).
[[nodiscard]] Result<void> put_in_words(AttachPlan& plan);
/// Why a plan has no site, from the first of those it leaves out.
[[nodiscard]] Error nothing_to_attach(const AttachPlan& plan);

}  // namespace usdt::plan
