// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <vector>

#include "flags.hpp"

namespace usdt_trace {

/// Says of functions of libraries that had no hits which other files of the traced processes have one of that name:
/// calls go to the first that the dynamic linker finds, as to jemalloc's malloc() instead of libc's.
[[nodiscard]] std::vector<std::string> hints_at_rivals(const Flags& flags, const usdt::AttachPlan& plan,
                                                       const usdt::SessionSummary& summary);

}  // namespace usdt_trace
