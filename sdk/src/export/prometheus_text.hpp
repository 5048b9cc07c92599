// SPDX-License-Identifier: BSD-2-Clause
// Metrics in the formats that Prometheus and what reads like it take: the text of version 0.0.4, that of OpenMetrics
// 1.0, and delimited protobuf messages, in which alone histograms have fine buckets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/metrics.hpp"

namespace usdt::exports::prometheus {

/// A page in one of the formats.
enum class PageFormat { text, open_metrics, protobuf };

/// Returns the format that a client wants: the one its Accept header prefers of those that there are; else text.
[[nodiscard]] PageFormat choose_format(std::string_view accept);
/// Returns the media type of a page.
[[nodiscard]] std::string_view media_type(PageFormat format);
/// Returns the page, in the order of names, each of which one family has.
[[nodiscard]] std::string write_page(std::vector<metrics::Family> families, PageFormat format);

}  // namespace usdt::exports::prometheus
