// SPDX-License-Identifier: BSD-2-Clause
// Which of the stock programs (bpf/trace.bpf.c) serves a plan, and what it need not do. Private to event/.
#pragma once

#include <string>

#include "usdt/plan.hpp"
#include "usdt/trace_options.hpp"

namespace usdt::event {

[[nodiscard]] bool asks_for_owner(const AttachPlan& plan);
/// Whether hits are counted where they begin, so that of calls nothing is kept.
[[nodiscard]] bool counts_beginnings(const AttachPlan& plan, const TraceOptions& options);
/// Whether what a hit has to read may be paged out, and is waited for.
[[nodiscard]] bool waits_for_pages(const AttachPlan& plan, const TraceOptions& options);
/// The smallest that does.
[[nodiscard]] std::string program_for(const AttachPlan& plan, const TraceOptions& options, bool sleepable);

}  // namespace usdt::event
