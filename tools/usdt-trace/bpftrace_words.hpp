// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace usdt_trace {

/// Says what to write instead of a program of bpftrace that was pasted where probes are named: PROBE /predicate/ {
/// action }. Nothing: `words` are none.
[[nodiscard]] std::optional<std::string> answer_to_bpftrace(const std::vector<std::string>& words);

}  // namespace usdt_trace
