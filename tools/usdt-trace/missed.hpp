// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <span>
#include <string>

#include "usdt/usdt.hpp"

namespace usdt_trace {

/// Returns "; 12 missed: ...", by cause, and which causes this kernel does not count; empty: nothing was missed.
[[nodiscard]] std::string missed_text(std::span<const usdt::MissedHits> missed);

/// ", 12 missed" of one probe; empty: none, or not known of it alone.
[[nodiscard]] std::string missed_text(const usdt::ProbeCounts& probe);

/// True if the kernel counted a miss.
[[nodiscard]] bool any_missed(std::span<const usdt::MissedHits> missed);

}  // namespace usdt_trace
