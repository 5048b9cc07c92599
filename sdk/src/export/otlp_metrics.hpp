// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "export/metrics.hpp"

namespace usdt::exports::otlp {

/// When a series of numbers began, and when they were so: times of day, ns.
struct MetricTimes {
  std::uint64_t start, now;
};

/// Returns metrics, each encoded.
[[nodiscard]] std::vector<std::string> encode_metrics(const std::vector<metrics::Family>& families,
                                                      const MetricTimes& times);

}  // namespace usdt::exports::otlp
