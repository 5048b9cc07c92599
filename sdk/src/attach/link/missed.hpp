// SPDX-License-Identifier: BSD-2-Clause
// Hits that the kernel ran no program for, as its counters tell. Private to attach/link.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "link/kernel_links.hpp"
#include "usdt/link.hpp"

namespace usdt::backends {

/// Returns the hits that a program was not run for since it ran already; nothing: the kernel does not count them.
[[nodiscard]] std::optional<std::uint64_t> recursion_misses(int program_fd) noexcept;

/// Returns hits at kprobes that came within another one's handler and never got to a program (what did, and found one
/// running, programs count), and calls that return probes have no room for.
[[nodiscard]] std::vector<MissedHits> missed_by_links(const KernelLinks& links);

/// Makes the counters say nothing where this kernel does not count, whatever they say.
void leave_out_uncounted(std::vector<MissedHits>& all);

}  // namespace usdt::backends
