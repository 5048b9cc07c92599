// SPDX-License-Identifier: BSD-2-Clause
// Finds the processes into whose memory breakpoints are put, where that need not be everybody's. Private to event/.
#pragma once

#include "program/family.hpp"
#include "usdt/plan.hpp"
#include "usdt/trace_options.hpp"

namespace usdt::event {

/// The processes whose memory alone breakpoints may be put into, with that of their descendants, when the trace begins.
/// No roots: that is no question. Error: why it cannot be.
[[nodiscard]] Result<backends::Family> family_of(const AttachPlan& plan, const TraceOptions& options);

/// Finds the family of what is added to a trace that runs, and has `before` (Tracer::add()). Its processes then do not
/// stand still, and all of them have to be found: of a command by a tracer that orphans come back to
/// (PR_SET_CHILD_SUBREAPER).
[[nodiscard]] Result<backends::Family> running_family_of(const AttachPlan& more, const AttachPlan& before,
                                                         const TraceOptions& options);

}  // namespace usdt::event
