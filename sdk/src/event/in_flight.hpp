// SPDX-License-Identifier: BSD-2-Clause
// Finds what has begun and not ended. Private to event/.
#pragma once

#include <memory>
#include <vector>

#include "event/context_places.hpp"
#include "event/overhead_guard.hpp"
#include "event/parts.hpp"
#include "usdt/event.hpp"
#include "usdt/plan.hpp"

namespace usdt::event {

/// Returns the layout of a record, with the weight of its time, if there is a guard.
[[nodiscard]] EventLayout layout_of(const usdt_event& head, const Parts& parts, const OverheadGuard* guard);

/// Returns events of the beginnings that are open, the oldest first (Tracer::in_flight()). `contexts` may be null.
[[nodiscard]] std::vector<OwnedEvent> events_in_flight(const std::shared_ptr<const AttachPlan>& plan, Parts& parts,
                                                       const OverheadGuard* guard, ContextPlaces* contexts);

}  // namespace usdt::event
