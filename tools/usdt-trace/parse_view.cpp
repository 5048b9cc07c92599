// SPDX-License-Identifier: BSD-2-Clause
// What the options for tables say.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

#include "view.hpp"

namespace usdt_trace {
namespace {

using usdt::ErrorKind;

/// An option that wants an expression, and the column it makes.
struct Option {
  const char* name;
  std::string RawView::*text;
  Shown shown;
};
constexpr std::array<Option, 4> kOfValue{{{"--sum", &RawView::sum, Shown::sum},
                                          {"--avg", &RawView::average, Shown::average},
                                          {"--min", &RawView::minimum, Shown::minimum},
                                          {"--max", &RawView::maximum, Shown::maximum}}};

usdt::Result<usdt::Expression> parse(const std::string& text, const char* option) {
  auto expression = usdt::parse_expression(text);
  if (!expression) return usdt::fail(expression.error().within(option));
  return expression;
}

/// Columns over the one expression that all options of that kind have.
usdt::Result<void> add_value(const RawView& raw, View& view, usdt::TableQuestion& question) {
  for (const Option& option : kOfValue) {
    const std::string& text = raw.*option.text;
    if (text.empty()) continue;
    if (!view.value.empty() && view.value != text)
      return usdt::fail(
          ErrorKind::invalid_argument,
          fmt::format("{} {}: one trace has one value for all columns, here {}", option.name, text, view.value));
    if (view.value.empty()) {
      auto value = parse(text, option.name);
      if (!value) return usdt::fail(value.error());
      question.value = std::move(*value);
    }
    view.value = text;
    view.shown.push_back(option.shown);
    question.extremes |= option.shown == Shown::minimum || option.shown == Shown::maximum;
  }
  question.reals = true;
  question.real_sums = !raw.sum.empty() || !raw.average.empty();
  return {};
}

/// "-12.5": -125, of which one digit is behind the point. Nothing: it is no such number.
std::optional<std::pair<std::int64_t, unsigned>> read_decimal(std::string_view text, unsigned digits) {
  std::string whole(text);
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::size_t behind = text.size() - std::min(point + 1, text.size());
  if (point < text.size()) whole.erase(point, 1);
  const auto own = static_cast<unsigned>(behind);
  if (behind > digits) return read_decimal(text, own);
  whole.append(digits - own, '0');
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), number);
  if (text.empty() || text.back() == '.' || error != std::errc() || end != whole.data() + whole.size())
    return std::nullopt;
  return std::pair(number, digits);
}

/// "EXPR:FROM:TO:STEP", of which the expression may have colons of its own.
usdt::Result<void> read_linear(std::string_view text, View& view) {
  std::array<std::string_view, 3> numbers{};
  for (std::size_t i = numbers.size(); i-- > 0;) {
    const std::size_t colon = text.rfind(':');
    if (colon == text.npos) break;
    numbers[i] = text.substr(colon + 1);
    text = text.substr(0, colon);
  }
  // All with as many digits behind the point as one of them has.
  for (int round = 0; round < 2; ++round) {
    using Number = std::pair<std::string_view, std::int64_t*>;
    for (const auto& [number, to] :
         {Number(numbers[0], &view.from), Number(numbers[1], &view.to), Number(numbers[2], &view.step)}) {
      const auto read = read_decimal(number, view.digits);
      if (!read)
        return usdt::fail(
            ErrorKind::invalid_argument,
            "--lhist: it takes EXPR:FROM:TO:STEP with three numbers up to 9223372036854775807 (without their "
            "point), such as 'size:0:4096:256' or, of reals, 'load:0:1:0.05'");
      std::tie(*to, view.digits) = *read;
    }
  }
  view.value = text;
  return {};
}

/// A histogram, again and again.
usdt::Result<void> add_heat_map(const RawView& raw, View& view, usdt::TableQuestion& question) {
  if (!question.keys.empty() || raw.top)
    return usdt::fail(ErrorKind::invalid_argument,
                      "--heatmap is one for all hits: neither --by nor --top goes with it");
  auto value = parse(raw.heat_map, "--heatmap");
  if (!value) return usdt::fail(value.error());
  view.heat_map = true;
  view.histogram = Histogram::log2;
  view.value = raw.heat_map;
  view.sub_bits = raw.sub_bits;
  view.interval = raw.interval.value_or(1);
  question.keys.push_back(usdt::log2_buckets(std::move(*value), raw.sub_bits));
  return {};
}

usdt::Result<void> add_histogram(const RawView& raw, View& view, usdt::TableQuestion& question) {
  if (!raw.log2.empty()) {
    view.histogram = Histogram::log2;
    view.value = raw.log2;
    view.sub_bits = raw.sub_bits;
    auto value = parse(raw.log2, "--hist");
    if (!value) return usdt::fail(value.error());
    question.keys.push_back(usdt::log2_buckets(std::move(*value), raw.sub_bits));
    return {};
  }
  view.histogram = Histogram::linear;
  if (auto read = read_linear(raw.linear, view); !read) return read;
  auto value = parse(view.value, "--lhist");
  if (!value) return usdt::fail(value.error());
  auto buckets = usdt::linear_buckets(std::move(*value), view.from, view.to, view.step, view.digits);
  if (!buckets) return usdt::fail(buckets.error().within("--lhist"));
  question.keys.push_back(std::move(*buckets));
  return {};
}

usdt::Result<void> add_latency(View& view, usdt::TableQuestion& question) {
  view.latency = true;
  view.value = "duration";
  view.shown = {Shown::count, Shown::p50, Shown::p90, Shown::p99, Shown::p999, Shown::maximum, Shown::sum};
  auto duration = parse(view.value, "--latency");
  if (!duration) return usdt::fail(duration.error());
  question.value = *duration;
  question.extremes = true;
  question.keys.push_back(usdt::log2_buckets(std::move(*duration), kLatencySubBits));
  return {};
}

usdt::Result<void> add_folded_key(const RawView& raw, View& view, usdt::TableQuestion& question) {
  const int wanted = (raw.distinct.empty() ? 0 : 1) + (raw.log2.empty() ? 0 : 1) + (raw.linear.empty() ? 0 : 1) +
                     (raw.latency ? 1 : 0) + (raw.heat_map.empty() ? 0 : 1);
  if (wanted == 0) return {};
  if (wanted > 1 || view.shown.size() > 1)
    return usdt::fail(
        ErrorKind::invalid_argument,
        "--distinct, --hist, --lhist, --heatmap and --latency exclude each other, and --sum, --avg, --min and --max");
  if (raw.latency) return add_latency(view, question);
  if (!raw.heat_map.empty()) return add_heat_map(raw, view, question);
  if (raw.distinct.empty()) return add_histogram(raw, view, question);
  auto value = parse(raw.distinct, "--distinct");
  if (!value) return usdt::fail(value.error());
  question.keys.push_back(usdt::fingerprint(std::move(*value)));
  view.value = raw.distinct;
  view.shown.push_back(Shown::distinct);
  return {};
}

/// Tables that are shown again and again have hits a second, too.
usdt::Result<void> add_rates(const RawView& raw, View& view, bool wanted) {
  const bool rows = wanted && view.histogram == Histogram::none && !view.folded;
  if (raw.rate && !rows)
    return usdt::fail(ErrorKind::invalid_argument,
                      "--rate is of the rows of a table: see --by; histograms, --folded and events have none");
  view.by_rate = raw.rate;
  view.rates = raw.rate || (rows && view.interval);
  return {};
}

bool is_field(const usdt::Expression& key, usdt::HitField field) {
  return key.root.op == usdt::Operator::field && key.root.bits == static_cast<std::uint64_t>(field);
}

usdt::Result<void> check_folded(const View& view) {
  if (!view.folded) return {};
  if (!view.has_stacks())
    return usdt::fail(ErrorKind::invalid_argument,
                      "--folded: a stack has to be among the keys of --by: ustack, kstack");
  const bool adds_up = view.shown.size() == 1 || (view.shown.size() == 2 && view.shown[1] == Shown::sum);
  if (!adds_up || view.has_buckets() || view.interval)
    return usdt::fail(ErrorKind::invalid_argument,
                      "--folded is a count, or with --sum a sum, for each stack: it goes with neither --avg, --min, "
                      "--max, --distinct, --hist, --lhist, --latency nor --interval");
  return {};
}

}  // namespace

usdt::Result<View> parse_view(const RawView& raw) {
  View view;
  auto question = std::make_shared<usdt::TableQuestion>();
  question->max_rows = raw.max_rows;
  if (!raw.by.empty()) {
    auto keys = usdt::parse_expressions(raw.by);
    if (!keys) return usdt::fail(keys.error().within("--by"));
    question->keys = std::move(*keys);
  }
  view.shown.push_back(Shown::count);
  view.interval = raw.interval;
  if (auto added = add_value(raw, view, *question); !added) return usdt::fail(added.error());
  if (auto added = add_folded_key(raw, view, *question); !added) return usdt::fail(added.error());
  const bool wanted = !question->keys.empty() || question->value;
  if (wanted && raw.slowest > 0)
    return usdt::fail(ErrorKind::invalid_argument,
                      "--slowest shows events, and a table has none: --by, --sum, --hist, --latency and their like do "
                      "not go with it");
  if (raw.in_flight > 0 && (wanted || raw.slowest > 0))
    return usdt::fail(ErrorKind::invalid_argument,
                      "--in-flight shows what has not ended: neither tables (--by, --sum, --hist, --latency and their "
                      "like) nor --slowest go with it");
  view.in_flight = raw.in_flight > 0;
  view.slowest = std::max(raw.slowest, raw.in_flight);
  if (!wanted && raw.top)
    return usdt::fail(ErrorKind::invalid_argument, "--top is about a table: see --by, --sum and --hist");
  if (raw.top) view.top = *raw.top;
  view.folded = raw.folded;
  if (auto made = add_rates(raw, view, wanted); !made) return usdt::fail(made.error());
  for (const usdt::Expression& key : question->keys) {
    view.user_stacks |= is_field(key, usdt::HitField::ustack);
    view.kernel_stacks |= is_field(key, usdt::HitField::kstack);
  }
  if (auto sense = check_folded(view); !sense) return usdt::fail(sense.error());
  if (wanted) view.question = std::move(question);
  if (!wanted) view.shown.clear();
  return view;
}

}  // namespace usdt_trace
