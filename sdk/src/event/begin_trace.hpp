// SPDX-License-Identifier: BSD-2-Clause
// The beginning of a trace, with the breakpoints of a family alone where that can be. Private to event/.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "event/context_places.hpp"
#include "event/descendants.hpp"
#include "event/hit_prices.hpp"
#include "event/load_part.hpp"
#include "event/thread_ends.hpp"
#include "usdt/link.hpp"
#include "usdt/trace_options.hpp"

namespace usdt::event {

/// The beginning of a trace, loaded and attached.
struct Begun {
  Loaded loaded;
  Result<ForkMarks> marks;
  Result<ThreadEnds> ends;
  std::optional<Result<HitPrices>> prices;
  std::optional<ContextPlaces> contexts;
  Link link;
};

/// Loads and attaches a plan: for a family alone where that can be, as `common` then says; else `pay` says why others
/// have the breakpoints, too. Errors: those of load_part() and LoadedObject::attach().
[[nodiscard]] Result<Begun> begin_trace(const std::shared_ptr<const AttachPlan>& plan, const TraceOptions& options,
                                        Shared& common, std::optional<std::string>& pay);

/// Whether what could not be attached to a family may do when it is attached to everybody, as `common` then says; `pay`
/// says why.
[[nodiscard]] bool is_left_to_everybody(const Error& error, Shared& common, std::optional<std::string>& pay);

}  // namespace usdt::event
