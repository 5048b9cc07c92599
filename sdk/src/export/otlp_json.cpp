// SPDX-License-Identifier: BSD-2-Clause
#include "export/otlp_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <protozero/pbf_reader.hpp>

#include "export/otlp_fields.hpp"
#include "export/value_text.hpp"
#include "io/json.hpp"

namespace usdt::exports::otlp {
namespace {

using io::JsonWriter;
using protozero::pbf_reader;

/// The kinds of fields, by their types in the .proto texts. JSON has 64 bits as text.
enum class FieldKind : std::uint8_t {
  string,
  id,  ///< bytes, which are hexadecimal digits here and base64 elsewhere
  message,
  int64,
  fixed32,
  fixed64,
  sfixed64,
  sint32,
  number_of_enum,
  boolean,
  real,
  fixed64_list,
  uint64_list,
  real_list,
};

struct Message;
struct Field {
  pbf_tag_type number = 0;
  std::string_view name = {};
  FieldKind kind = FieldKind::string;
  const Message* message = nullptr;  ///< of the kind `message`
  bool is_repeated = false;
};
struct Message {
  std::array<Field, 9> fields;  ///< those that are used, others behind them
};

template <class Tag>
constexpr Field one(Tag tag, std::string_view name, FieldKind kind) {
  return {static_cast<pbf_tag_type>(tag), name, kind};
}
template <class Tag>
constexpr Field one(Tag tag, std::string_view name, const Message& message) {
  return {static_cast<pbf_tag_type>(tag), name, FieldKind::message, &message};
}
template <class Tag>
constexpr Field many(Tag tag, std::string_view name, const Message& message) {
  return {static_cast<pbf_tag_type>(tag), name, FieldKind::message, &message, true};
}

extern const Message kKeyValue, kAnyValue;
constexpr Message kArray{{many(Values::value, "values", kAnyValue)}};
constexpr Message kObject{{many(Values::value, "values", kKeyValue)}};
constexpr Message kAnyValue{
    {one(AnyValue::text, "stringValue", FieldKind::string), one(AnyValue::whole, "intValue", FieldKind::int64),
     one(AnyValue::real, "doubleValue", FieldKind::real), one(AnyValue::array, "arrayValue", kArray),
     one(AnyValue::object, "kvlistValue", kObject)}};
constexpr Message kKeyValue{{one(KeyValue::key, "key", FieldKind::string), one(KeyValue::value, "value", kAnyValue)}};
constexpr Message kResource{{many(Resource::attribute, "attributes", kKeyValue)}};
constexpr Message kScope{{one(Scope::name, "name", FieldKind::string)}};

constexpr Message kSpan{
    {one(Span::trace_id, "traceId", FieldKind::id), one(Span::span_id, "spanId", FieldKind::id),
     one(Span::parent, "parentSpanId", FieldKind::id), one(Span::name, "name", FieldKind::string),
     one(Span::kind, "kind", FieldKind::number_of_enum), one(Span::start, "startTimeUnixNano", FieldKind::fixed64),
     one(Span::end, "endTimeUnixNano", FieldKind::fixed64), many(Span::attribute, "attributes", kKeyValue)}};
constexpr Message kLogRecord{
    {one(LogRecord::time, "timeUnixNano", FieldKind::fixed64),
     one(LogRecord::observed, "observedTimeUnixNano", FieldKind::fixed64),
     one(LogRecord::severity, "severityNumber", FieldKind::number_of_enum),
     many(LogRecord::attribute, "attributes", kKeyValue), one(LogRecord::flags, "flags", FieldKind::fixed32),
     one(LogRecord::trace_id, "traceId", FieldKind::id), one(LogRecord::span_id, "spanId", FieldKind::id),
     one(LogRecord::event_name, "eventName", FieldKind::string)}};

constexpr Message kNumberPoint{
    {one(NumberPoint::start, "startTimeUnixNano", FieldKind::fixed64),
     one(NumberPoint::time, "timeUnixNano", FieldKind::fixed64), one(NumberPoint::real, "asDouble", FieldKind::real),
     one(NumberPoint::whole, "asInt", FieldKind::sfixed64), many(NumberPoint::attribute, "attributes", kKeyValue)}};
constexpr Message kHistogramPoint{{one(HistogramPoint::start, "startTimeUnixNano", FieldKind::fixed64),
                                   one(HistogramPoint::time, "timeUnixNano", FieldKind::fixed64),
                                   one(HistogramPoint::count, "count", FieldKind::fixed64),
                                   one(HistogramPoint::sum, "sum", FieldKind::real),
                                   one(HistogramPoint::counts, "bucketCounts", FieldKind::fixed64_list),
                                   one(HistogramPoint::bounds, "explicitBounds", FieldKind::real_list),
                                   many(HistogramPoint::attribute, "attributes", kKeyValue)}};
constexpr Message kBuckets{
    {one(Buckets::offset, "offset", FieldKind::sint32), one(Buckets::counts, "bucketCounts", FieldKind::uint64_list)}};
constexpr Message kExponentialPoint{
    {many(ExponentialPoint::attribute, "attributes", kKeyValue),
     one(ExponentialPoint::start, "startTimeUnixNano", FieldKind::fixed64),
     one(ExponentialPoint::time, "timeUnixNano", FieldKind::fixed64),
     one(ExponentialPoint::count, "count", FieldKind::fixed64), one(ExponentialPoint::sum, "sum", FieldKind::real),
     one(ExponentialPoint::scale, "scale", FieldKind::sint32),
     one(ExponentialPoint::zero_count, "zeroCount", FieldKind::fixed64),
     one(ExponentialPoint::positive, "positive", kBuckets), one(ExponentialPoint::negative, "negative", kBuckets)}};

constexpr Message data_of(const Message& point) {
  return {{many(Data::point, "dataPoints", point),
           one(Data::temporality, "aggregationTemporality", FieldKind::number_of_enum),
           one(Data::is_monotonic, "isMonotonic", FieldKind::boolean)}};
}
constexpr Message kNumbers = data_of(kNumberPoint), kHistogram = data_of(kHistogramPoint),
                  kExponential = data_of(kExponentialPoint);
constexpr Message kMetric{{one(Metric::name, "name", FieldKind::string),
                           one(Metric::description, "description", FieldKind::string),
                           one(Metric::unit, "unit", FieldKind::string), one(Metric::gauge, "gauge", kNumbers),
                           one(Metric::sum, "sum", kNumbers), one(Metric::histogram, "histogram", kHistogram),
                           one(Metric::exponential, "exponentialHistogram", kExponential)}};

constexpr Message scope_of(std::string_view items, const Message& item) {
  return {{one(OfScope::scope, "scope", kScope), many(OfScope::item, items, item)}};
}
constexpr Message resource_of(std::string_view scopes, const Message& scope) {
  return {{one(OfResource::resource, "resource", kResource), many(OfResource::of_scope, scopes, scope)}};
}
constexpr Message request_of(std::string_view resources, const Message& resource) {
  return {{many(Export::of_resource, resources, resource)}};
}
constexpr Message kScopeSpans = scope_of("spans", kSpan), kScopeLogs = scope_of("logRecords", kLogRecord),
                  kScopeMetrics = scope_of("metrics", kMetric);
constexpr Message kResourceSpans = resource_of("scopeSpans", kScopeSpans),
                  kResourceLogs = resource_of("scopeLogs", kScopeLogs),
                  kResourceMetrics = resource_of("scopeMetrics", kScopeMetrics);

struct SignalRow {
  std::string_view path;
  Message request;
};
/// In the order of Signal.
constexpr std::array kSignals{SignalRow{"/v1/traces", request_of("resourceSpans", kResourceSpans)},
                              SignalRow{"/v1/logs", request_of("resourceLogs", kResourceLogs)},
                              SignalRow{"/v1/metrics", request_of("resourceMetrics", kResourceMetrics)}};

const SignalRow& row_of(Signal signal) noexcept { return kSignals[static_cast<std::size_t>(signal)]; }

template <class Number>
void write_digits(JsonWriter& json, Number number) {
  const fmt::format_int digits(number);
  io::json_text(json, {digits.data(), digits.size()});
}

template <class Numbers, class Write>
void write_list(JsonWriter& json, const Numbers& numbers, const Write& write) {
  json.StartArray();
  for (const auto number : numbers) write(number);
  json.EndArray();
}

std::string_view view_of(pbf_reader& reader) {
  const auto view = reader.get_view();
  return {view.data(), view.size()};
}

void write_message(JsonWriter& json, const Message& message, pbf_reader reader);

/// Writes the value of the field where the reader is.
void write_value(JsonWriter& json, const Field& field, pbf_reader& reader) {
  const auto digits = [&](auto number) { write_digits(json, number); };
  switch (field.kind) {
    case FieldKind::string:
      return io::json_text(json, view_of(reader));
    case FieldKind::id:
      return io::json_text(json, hex_digits(view_of(reader)));
    case FieldKind::message:
      return write_message(json, *field.message, reader.get_message());
    case FieldKind::int64:
      return digits(reader.get_int64());
    case FieldKind::fixed32:
      return void(json.Uint(reader.get_fixed32()));
    case FieldKind::fixed64:
      return digits(reader.get_fixed64());
    case FieldKind::sfixed64:
      return digits(reader.get_sfixed64());
    case FieldKind::sint32:
      return void(json.Int(reader.get_sint32()));
    case FieldKind::number_of_enum:
      return void(json.Int(reader.get_enum()));
    case FieldKind::boolean:
      return void(json.Bool(reader.get_bool()));
    case FieldKind::real:
      return io::json_real(json, reader.get_double());
    case FieldKind::fixed64_list:
      return write_list(json, reader.get_packed_fixed64(), digits);
    case FieldKind::uint64_list:
      return write_list(json, reader.get_packed_uint64(), digits);
    case FieldKind::real_list:
      return write_list(json, reader.get_packed_double(), [&](double number) { io::json_real(json, number); });
  }
}

/// The elements of a repeated field come one behind the other, since this SDK wrote them so.
void write_message(JsonWriter& json, const Message& message, pbf_reader reader) {
  const Field* list = nullptr;  ///< which has begun
  json.StartObject();
  while (reader.next()) {
    const auto field = std::ranges::find(message.fields, reader.tag(), &Field::number);
    if (list != nullptr && (field == message.fields.end() || &*field != list)) {
      json.EndArray();
      list = nullptr;
    }
    if (field == message.fields.end()) {
      reader.skip();
      continue;
    }
    if (list == nullptr) io::json_key(json, field->name);
    if (list == nullptr && field->is_repeated) {
      json.StartArray();
      list = &*field;
    }
    write_value(json, *field, reader);
  }
  if (list != nullptr) json.EndArray();
  json.EndObject();
}

}  // namespace

std::string_view path_of(Signal signal) noexcept { return row_of(signal).path; }

std::string to_json(Signal signal, const std::string& request) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  write_message(json, row_of(signal).request, pbf_reader(request));
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace usdt::exports::otlp
