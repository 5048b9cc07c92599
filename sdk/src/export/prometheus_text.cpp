// SPDX-License-Identifier: BSD-2-Clause
#include "export/prometheus_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <protozero/varint.hpp>
#include <utility>

#include "export/prometheus_fields.hpp"
#include "io/escape.hpp"
#include "usdt/view.hpp"

namespace usdt::exports::prometheus {
namespace {

using metrics::Family;
using metrics::Kind;
using metrics::Labels;
using metrics::Sample;
using protozero::pbf_builder;

std::string_view suffix_of(Kind kind) { return kind == Kind::counter ? "_total" : ""; }

std::string_view word_of(Kind kind) {
  switch (kind) {
    case Kind::counter:
      return "counter";
    case Kind::gauge:
      return "gauge";
    case Kind::histogram:
      break;
  }
  return "histogram";
}

std::string real_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", number);
}

double real_of(const Sample& sample) {
  const auto* whole = std::get_if<Int128>(&sample.value);
  return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(sample.value);
}

std::string number_text(const Sample& sample) {
  const auto* whole = std::get_if<Int128>(&sample.value);
  return whole != nullptr ? decimal_text(*whole) : real_text(std::get<double>(sample.value));
}

/// One page of text.
class TextPage {
 public:
  explicit TextPage(bool open) : open_(open) {}

  void add(const Family& family) {
    const std::string name = family.name + (open_ ? std::string() : std::string(suffix_of(family.kind)));
    page_ += fmt::format("# TYPE {} {}\n", name, word_of(family.kind));
    if (open_ && !family.unit.empty()) page_ += fmt::format("# UNIT {} {}\n", name, family.unit);
    page_ += fmt::format("# HELP {} {}\n", name, escaped(family.help, open_));
    if (family.kind == Kind::histogram) return add_histograms(family);
    for (const Sample& sample : family.samples)
      page_ += fmt::format("{}{}{} {}\n", family.name, suffix_of(family.kind), labels_text(sample.labels),
                           number_text(sample));
  }

  [[nodiscard]] std::string take() {
    if (open_) page_ += "# EOF\n";
    return std::move(page_);
  }

 private:
  static std::string escaped(std::string_view text, bool quotes) {
    std::string escaped;
    for (const char c : io::valid_utf8(text)) {
      if (c == '\\' || c == '\n' || (quotes && c == '"')) escaped += '\\';
      escaped += c == '\n' ? 'n' : c;
    }
    return escaped;
  }

  /// `le`: the bound of a bucket.
  static std::string labels_text(const Labels& labels, std::string_view le = {}) {
    std::string text;
    const auto add = [&](std::string_view name, std::string_view value) {
      text += fmt::format("{}{}=\"{}\"", text.empty() ? "{" : ",", name, escaped(value, true));
    };
    for (const auto& [name, value] : labels) add(name, value);
    if (!le.empty()) add("le", le);
    return text.empty() ? text : text + "}";
  }

  /// OpenMetrics has a point in each of them.
  [[nodiscard]] std::string bound_text(double bound) const {
    std::string text = real_text(bound);
    const bool is_whole = text.find_first_not_of("-0123456789") == text.npos;
    return open_ && is_whole ? text + ".0" : text;
  }

  void add_histograms(const Family& family) {
    const std::vector<double> bounds = metrics::bounds_of(family);
    for (const Sample& sample : family.samples) {
      const auto& histogram = std::get<metrics::Histogram>(sample.value);
      const std::vector<std::uint64_t> counts = metrics::count_up_to(bounds, histogram);
      const auto add_bucket = [&](const std::string& le, std::uint64_t count) {
        page_ += fmt::format("{}_bucket{} {}\n", family.name, labels_text(sample.labels, le), count);
      };
      for (std::size_t i = 0; i < bounds.size(); ++i) add_bucket(bound_text(bounds[i]), counts[i]);
      add_bucket("+Inf", histogram.count);
      const std::string labels = labels_text(sample.labels);
      // OpenMetrics has no sum where values may be below 0, and without a sum no count but that of the last bucket.
      const bool has_negative = !histogram.buckets.empty() && histogram.buckets.front().low < 0;
      const bool has_sum = histogram.sum && !(open_ && has_negative);
      if (has_sum) page_ += fmt::format("{}_sum{} {}\n", family.name, labels, real_text(*histogram.sum));
      if (!has_sum && open_) continue;
      page_ += fmt::format("{}_count{} {}\n", family.name, labels, histogram.count);
    }
  }

  bool open_;
  std::string page_;
};

// --- protobuf ---
/// Adds buckets of equal ratio with these counts, without gaps of empty ones.
void add_spans(pbf_builder<Histogram>& histogram, const std::map<std::int32_t, std::uint64_t>& counts, Histogram span,
               Histogram delta) {
  std::int32_t expected = 0;  // index behind the bucket before
  std::int64_t before = 0;
  std::string deltas;
  for (auto first = counts.begin(); first != counts.end();) {
    auto last = first;
    std::uint32_t length = 0;
    for (; last != counts.end() && last->first == first->first + static_cast<std::int32_t>(length); ++last) ++length;
    // Prometheus counts buckets from their upper bound: index + 1.
    pbf_builder<Span> added(histogram, span);
    added.add_sint32(Span::offset, first->first + 1 - expected);
    added.add_uint32(Span::length, length);
    expected = first->first + 1 + static_cast<std::int32_t>(length);
    first = last;
  }
  for (const auto& [index, count] : counts) {
    const auto number = static_cast<std::int64_t>(count);
    histogram.add_sint64(delta, number - std::exchange(before, number));
  }
}

void add_histogram(pbf_builder<Metric>& metric, const metrics::Histogram& values, const std::vector<double>& bounds) {
  pbf_builder<Histogram> histogram(metric, Metric::histogram);
  histogram.add_uint64(Histogram::count, values.count);
  if (values.sum) histogram.add_double(Histogram::sum, *values.sum);
  const std::vector<std::uint64_t> counts = metrics::count_up_to(bounds, values);
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    pbf_builder<Bucket> bucket(histogram, Histogram::bucket);
    bucket.add_uint64(Bucket::cumulative_count, counts[i]);
    bucket.add_double(Bucket::upper_bound, bounds[i]);
  }
  if (!values.scale) return;
  const metrics::EqualRatios fine = metrics::put_in_equal_ratios(values);
  histogram.add_sint32(Histogram::schema, static_cast<std::int32_t>(fine.scale));
  histogram.add_double(Histogram::zero_threshold, 0);
  histogram.add_uint64(Histogram::zero_count, fine.zeros);
  add_spans(histogram, fine.negative, Histogram::negative_span, Histogram::negative_delta);
  add_spans(histogram, fine.positive, Histogram::positive_span, Histogram::positive_delta);
  if (fine.positive.empty() && fine.negative.empty()) {  // a span says that there are fine buckets
    pbf_builder<Span> none(histogram, Histogram::positive_span);
    none.add_sint32(Span::offset, 0);
    none.add_uint32(Span::length, 0);
  }
}

MetricType type_of(Kind kind) {
  switch (kind) {
    case Kind::counter:
      return MetricType::counter;
    case Kind::gauge:
      return MetricType::gauge;
    case Kind::histogram:
      break;
  }
  return MetricType::histogram;
}

void add_metric(pbf_builder<MetricFamily>& family, Kind kind, const Sample& sample, const std::vector<double>& bounds) {
  pbf_builder<Metric> metric(family, MetricFamily::metric);
  for (const auto& [name, value] : sample.labels) {
    pbf_builder<LabelPair> label(metric, Metric::label);
    label.add_string(LabelPair::name, name);
    label.add_string(LabelPair::value, io::valid_utf8(value));
  }
  if (kind == Kind::histogram) return add_histogram(metric, std::get<metrics::Histogram>(sample.value), bounds);
  pbf_builder<Scalar> scalar(metric, kind == Kind::counter ? Metric::counter : Metric::gauge);
  scalar.add_double(Scalar::value, real_of(sample));
}

std::string encoded(const Family& family) {
  std::string encoded;
  pbf_builder<MetricFamily> message(encoded);
  message.add_string(MetricFamily::name, family.name + std::string(suffix_of(family.kind)));
  message.add_string(MetricFamily::help, io::valid_utf8(family.help));
  message.add_enum(MetricFamily::type, static_cast<std::int32_t>(type_of(family.kind)));
  const std::vector<double> bounds =
      family.kind == Kind::histogram ? metrics::bounds_of(family) : std::vector<double>();
  for (const Sample& sample : family.samples) add_metric(message, family.kind, sample, bounds);
  return encoded;
}

// --- what a client wants ---
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// The format that one part of an Accept header is about, and how much it is wanted.
std::optional<std::pair<double, PageFormat>> wish_of(std::string_view part) {
  double quality = 1;
  const std::string_view type = trimmed(part.substr(0, part.find(';')));
  bool is_delimited = false;
  while (!part.empty()) {
    const std::string_view parameter = trimmed(part.substr(0, part.find(';')));
    if (parameter.starts_with("q="))
      std::from_chars(parameter.data() + 2, parameter.data() + parameter.size(), quality);
    is_delimited |= parameter == "encoding=delimited";
    part.remove_prefix(std::min(part.find(';'), part.size() - 1) + 1);
  }
  if (type == "application/openmetrics-text") return std::pair(quality, PageFormat::open_metrics);
  if (type == "application/vnd.google.protobuf" && is_delimited) return std::pair(quality, PageFormat::protobuf);
  if (type == "text/plain" || type == "text/*") return std::pair(quality, PageFormat::text);
  return std::nullopt;
}

}  // namespace

PageFormat choose_format(std::string_view accept) {
  std::pair<double, PageFormat> best{0, PageFormat::text};
  while (!accept.empty()) {
    const std::size_t end = std::min(accept.find(','), accept.size());
    const auto wish = wish_of(accept.substr(0, end));
    if (wish && wish->first > best.first) best = *wish;
    accept.remove_prefix(std::min(end + 1, accept.size()));
  }
  return best.second;
}

std::string_view media_type(PageFormat format) {
  switch (format) {
    case PageFormat::text:
      return "text/plain; version=0.0.4; charset=utf-8";
    case PageFormat::open_metrics:
      return "application/openmetrics-text; version=1.0.0; charset=utf-8";
    case PageFormat::protobuf:
      break;
  }
  return "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
}

std::string write_page(std::vector<Family> families, PageFormat format) {
  std::ranges::stable_sort(families, {}, &Family::name);
  if (format != PageFormat::protobuf) {
    TextPage page(format == PageFormat::open_metrics);
    for (const Family& family : families) page.add(family);
    return page.take();
  }
  std::string page;
  for (const Family& family : families) {
    const std::string message = encoded(family);
    protozero::add_varint_to_buffer(&page, message.size());
    page += message;
  }
  return page;
}

}  // namespace usdt::exports::prometheus
