// SPDX-License-Identifier: BSD-2-Clause
// The numbers that the kernel counts of a site, among those of its probe. Private to event/.
#pragma once

#include "usdt/bpf/event.h"
#include "usdt/counts.hpp"

namespace usdt::event {

/// Adds what the kernel counted of one site.
void add_kernel_counts(ProbeCounts& counts, const usdt_site_stats& counted) noexcept;

}  // namespace usdt::event
