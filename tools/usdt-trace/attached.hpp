// SPDX-License-Identifier: BSD-2-Clause
// What a trace is attached to, in words.
#pragma once

#include <string>
#include <vector>

#include "flags.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

/// "3 sites of 2 probes in 1 file, and 409 kernel functions"; with -v each with "by tracing_multi".
[[nodiscard]] std::string attached_text(const Flags& flags, const usdt::Tracer& tracer);

/// By the planner and by the kernel.
[[nodiscard]] std::vector<usdt::SkippedSite> skipped_sites(const usdt::Tracer& tracer);

/// Says what was skipped: the first of them each, the rest counted by reason.
void report_skipped(const Flags& flags, const usdt::Tracer& tracer);

/// Says at which sites not all values are read, but for the first `told` of usdt::shortened_sites(); how many these
/// are.
[[nodiscard]] std::size_t report_shortened(const Flags& flags, const usdt::Tracer& tracer, std::size_t told);

}  // namespace usdt_trace
