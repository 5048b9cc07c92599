// SPDX-License-Identifier: BSD-2-Clause
#include "export/otlp_metrics.hpp"

#include <limits>
#include <utility>

#include "export/otlp_fields.hpp"
#include "export/otlp_values.hpp"
#include "io/escape.hpp"

namespace usdt::exports::otlp {
namespace {

using metrics::Family;
using metrics::Kind;
using metrics::Sample;
using protozero::pbf_builder;

template <class Point>
void begin_point(pbf_builder<Point>& point, const Sample& sample, const MetricTimes& times) {
  AttributeWriter labels;
  for (const auto& [name, value] : sample.labels) labels.add(name, value);
  labels.take(point, Point::attribute);
  point.add_fixed64(Point::start, times.start);
  point.add_fixed64(Point::time, times.now);
}

/// Numbers beyond 64 bits are reals.
void add_number(pbf_builder<Data>& data, const Sample& sample, const MetricTimes& times) {
  pbf_builder<NumberPoint> point(data, Data::point);
  begin_point(point, sample, times);
  const auto* whole = std::get_if<Int128>(&sample.value);
  if (whole == nullptr)
    point.add_double(NumberPoint::real, std::get<double>(sample.value));
  else if (*whole > std::numeric_limits<std::int64_t>::max() || *whole < std::numeric_limits<std::int64_t>::min())
    point.add_double(NumberPoint::real, static_cast<double>(*whole));
  else
    point.add_sfixed64(NumberPoint::whole, static_cast<std::int64_t>(*whole));
}

void add_buckets(pbf_builder<ExponentialPoint>& point, ExponentialPoint side,
                 const std::map<std::int32_t, std::uint64_t>& counts) {
  if (counts.empty()) return;
  pbf_builder<Buckets> buckets(point, side);
  const std::int32_t first = counts.begin()->first, last = counts.rbegin()->first;
  buckets.add_sint32(Buckets::offset, first);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(last - first) + 1);
  for (const auto& [index, count] : counts) all[static_cast<std::size_t>(index - first)] = count;
  buckets.add_packed_uint64(Buckets::counts, all.begin(), all.end());
}

void add_exponential(pbf_builder<Data>& data, const Sample& sample, const MetricTimes& times) {
  const auto& histogram = std::get<metrics::Histogram>(sample.value);
  const metrics::EqualRatios fine = metrics::put_in_equal_ratios(histogram);
  pbf_builder<ExponentialPoint> point(data, Data::point);
  begin_point(point, sample, times);
  point.add_fixed64(ExponentialPoint::count, histogram.count);
  if (histogram.sum) point.add_double(ExponentialPoint::sum, *histogram.sum);
  point.add_sint32(ExponentialPoint::scale, static_cast<std::int32_t>(fine.scale));
  point.add_fixed64(ExponentialPoint::zero_count, fine.zeros);
  add_buckets(point, ExponentialPoint::positive, fine.positive);
  add_buckets(point, ExponentialPoint::negative, fine.negative);
}

/// Buckets have their own counts here, and there is one above all bounds.
void add_explicit(pbf_builder<Data>& data, const Sample& sample, const std::vector<double>& bounds,
                  const MetricTimes& times) {
  const auto& histogram = std::get<metrics::Histogram>(sample.value);
  std::vector<std::uint64_t> counts = metrics::count_up_to(bounds, histogram);
  counts.push_back(histogram.count);
  for (std::size_t i = counts.size() - 1; i > 0; --i) counts[i] -= counts[i - 1];
  pbf_builder<HistogramPoint> point(data, Data::point);
  begin_point(point, sample, times);
  point.add_fixed64(HistogramPoint::count, histogram.count);
  if (histogram.sum) point.add_double(HistogramPoint::sum, *histogram.sum);
  point.add_packed_fixed64(HistogramPoint::counts, counts.begin(), counts.end());
  point.add_packed_double(HistogramPoint::bounds, bounds.begin(), bounds.end());
}

void add_histograms(pbf_builder<Metric>& metric, const Family& family, const MetricTimes& times) {
  const bool is_exponential = std::get<metrics::Histogram>(family.samples.front().value).scale.has_value();
  const std::vector<double> bounds = is_exponential ? std::vector<double>() : metrics::bounds_of(family);
  pbf_builder<Data> data(metric, is_exponential ? Metric::exponential : Metric::histogram);
  for (const Sample& sample : family.samples)
    is_exponential ? add_exponential(data, sample, times) : add_explicit(data, sample, bounds, times);
  data.add_enum(Data::temporality, kCumulative);
}

std::string encode_metric(const Family& family, const MetricTimes& times) {
  std::string encoded;
  pbf_builder<Metric> metric(encoded);
  metric.add_string(Metric::name, family.name);
  metric.add_string(Metric::description, io::valid_utf8(family.help));  // it quotes the question
  if (!family.unit.empty()) metric.add_string(Metric::unit, "s");
  if (family.kind == Kind::histogram) {
    add_histograms(metric, family, times);
    return encoded;
  }
  pbf_builder<Data> data(metric, family.kind == Kind::counter ? Metric::sum : Metric::gauge);
  for (const Sample& sample : family.samples) add_number(data, sample, times);
  if (family.kind == Kind::gauge) return encoded;
  data.add_enum(Data::temporality, kCumulative);
  data.add_bool(Data::is_monotonic, true);
  return encoded;
}

}  // namespace

std::vector<std::string> encode_metrics(const std::vector<Family>& families, const MetricTimes& times) {
  std::vector<std::string> encoded;
  for (const Family& family : families) encoded.push_back(encode_metric(family, times));
  return encoded;
}

}  // namespace usdt::exports::otlp
