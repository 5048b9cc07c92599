// SPDX-License-Identifier: BSD-2-Clause
// Options of a trace that cannot be meant.
#pragma once

#include <cstdint>

#include "usdt/event.hpp"
#include "usdt/plan.hpp"
#include "usdt/trace_options.hpp"

namespace usdt::event {

/// The layout of the records that `options` ask for, and whether a ring of `ring_bytes` can hold one. Errors:
/// invalid_argument, naming the option and why.
[[nodiscard]] Result<EventLayout> layout_for(const AttachPlan& plan, const TraceOptions& options,
                                             std::uint32_t ring_bytes);

}  // namespace usdt::event
