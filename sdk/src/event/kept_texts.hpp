// SPDX-License-Identifier: BSD-2-Clause
// Calls whose texts are asked about. Private to event/.
#pragma once

#include <memory>

#include "usdt/plan.hpp"
#include "usdt/result.hpp"
#include "usdt/trace_options.hpp"

namespace usdt::event {

/// The plan for programs whose question about a call comes at its end: texts that were known at its beginning are asked
/// about as its record has had them since. Where there are no such questions, `plan` itself. Errors: not_supported (a
/// text that no record has), invalid_argument (one that is shown with another length), limit (more than
/// TypedExpression::kMostValues values).
[[nodiscard]] Result<std::shared_ptr<const AttachPlan>> with_kept_texts(std::shared_ptr<const AttachPlan> plan,
                                                                        const TraceOptions& options);

}  // namespace usdt::event
