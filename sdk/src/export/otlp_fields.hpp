// SPDX-License-Identifier: BSD-2-Clause
// Numbers of the protobuf fields of OpenTelemetry's protocol (opentelemetry-proto 1.x, of August 2026).
#pragma once

#include <cstdint>
#include <protozero/pbf_builder.hpp>

namespace usdt::exports::otlp {

using protozero::pbf_tag_type;

/// A request for traces, metrics or logs: one of the resource's.
enum class Export : pbf_tag_type { of_resource = 1 };
/// Of traces, metrics and logs alike: their resource, and what its scopes have.
enum class OfResource : pbf_tag_type { resource = 1, of_scope = 2 };
enum class OfScope : pbf_tag_type { scope = 1, item = 2 };
enum class Resource : pbf_tag_type { attribute = 1 };
enum class Scope : pbf_tag_type { name = 1, version = 2 };

enum class KeyValue : pbf_tag_type { key = 1, value = 2 };
enum class AnyValue : pbf_tag_type { text = 1, whole = 3, real = 4, array = 5, object = 6 };
/// Of an array its elements, of an object its members.
enum class Values : pbf_tag_type { value = 1 };

enum class Span : pbf_tag_type {
  trace_id = 1,
  span_id = 2,
  parent = 4,
  name = 5,
  kind = 6,
  start = 7,
  end = 8,
  attribute = 9
};
inline constexpr std::int32_t kSpanInternal = 1;

enum class LogRecord : pbf_tag_type {
  time = 1,
  severity = 2,
  attribute = 6,
  flags = 8,
  trace_id = 9,
  span_id = 10,
  observed = 11,
  event_name = 12
};
inline constexpr std::int32_t kSeverityInfo = 9;

enum class Metric : pbf_tag_type {
  name = 1,
  description = 2,
  unit = 3,
  gauge = 5,
  sum = 7,
  histogram = 9,
  exponential = 10
};
/// Of a gauge, a sum and both kinds of histograms.
enum class Data : pbf_tag_type { point = 1, temporality = 2, is_monotonic = 3 };
inline constexpr std::int32_t kCumulative = 2;

enum class NumberPoint : pbf_tag_type { start = 2, time = 3, real = 4, whole = 6, attribute = 7 };
enum class HistogramPoint : pbf_tag_type {
  start = 2,
  time = 3,
  count = 4,
  sum = 5,
  counts = 6,
  bounds = 7,
  attribute = 9
};
enum class ExponentialPoint : pbf_tag_type {
  attribute = 1,
  start = 2,
  time = 3,
  count = 4,
  sum = 5,
  scale = 6,
  zero_count = 7,
  positive = 8,
  negative = 9,
};
enum class Buckets : pbf_tag_type { offset = 1, counts = 2 };

/// What a server answers, for traces, metrics and logs alike.
enum class Answer : pbf_tag_type { partial_success = 1 };
enum class PartialSuccess : pbf_tag_type { rejected = 1, message = 2 };

/// google.rpc.Status: why a server takes nothing.
enum class Status : pbf_tag_type { message = 2 };

}  // namespace usdt::exports::otlp
