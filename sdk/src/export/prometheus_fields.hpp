// SPDX-License-Identifier: BSD-2-Clause
// Numbers of the protobuf fields of Prometheus's metrics (io/prometheus/client/metrics.proto of its client_model).
#pragma once

#include <cstdint>
#include <protozero/pbf_builder.hpp>

namespace usdt::exports::prometheus {

using protozero::pbf_tag_type;

enum class MetricFamily : pbf_tag_type { name = 1, help = 2, type = 3, metric = 4, unit = 5 };
/// Values of MetricFamily::type.
enum class MetricType : std::int32_t { counter = 0, gauge = 1, histogram = 4 };

enum class Metric : pbf_tag_type { label = 1, gauge = 2, counter = 3, histogram = 7 };
enum class LabelPair : pbf_tag_type { name = 1, value = 2 };
/// Of a gauge as of a counter.
enum class Scalar : pbf_tag_type { value = 1 };

enum class Histogram : pbf_tag_type {
  count = 1,
  sum = 2,
  bucket = 3,
  schema = 5,
  zero_threshold = 6,
  zero_count = 7,
  negative_span = 9,
  negative_delta = 10,  ///< differences to the bucket before
  positive_span = 12,
  positive_delta = 13,
};
enum class Bucket : pbf_tag_type { cumulative_count = 1, upper_bound = 2 };
/// Buckets without a gap: how many indexes are between it and the span before; of the first one its index.
enum class Span : pbf_tag_type { offset = 1, length = 2 };

}  // namespace usdt::exports::prometheus
