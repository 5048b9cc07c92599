// SPDX-License-Identifier: BSD-2-Clause
// Checks a plan as a whole, and changes it as a whole. Private to plan/.
#pragma once

#include "usdt/plan.hpp"

namespace usdt::plan {

/// Checks that some site has each argument whose text is asked for. Errors: invalid_argument.
[[nodiscard]] Result<void> check_texts(const AttachPlan& plan, const TextOptions& texts);
/// Checks that no question asks how long a hit took, which is known of calls alone. Errors: invalid_argument.
[[nodiscard]] Result<void> check_durations(const AttachPlan& plan);
/// Replaces words like "provider" in questions by what they are at each site: all its hits agree, and in the kernel
/// sites alike share a question. Errors: limit (more questions than programs are loaded for).
[[nodiscard]] Result<void> put_in_words(AttachPlan& plan);
/// Returns the reason why a plan has no site, from the first site that it leaves out.
[[nodiscard]] Error nothing_to_attach(const AttachPlan& plan);

}  // namespace usdt::plan
