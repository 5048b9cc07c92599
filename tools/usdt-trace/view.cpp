// SPDX-License-Identifier: BSD-2-Clause
#include "view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "common/escape.hpp"
#include "output.hpp"

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

/// Buckets a sixteenth as wide as their power of 2.
constexpr unsigned kLatencySubBits = 4;

usdt::Result<void> add_latency(View& view, usdt::TableQuestion& question) {
  view.latency = true;
  view.value = "duration";
  view.shown = {Shown::count, Shown::p50, Shown::p90, Shown::p99, Shown::p999, Shown::maximum};
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
  question.keys.push_back(std::move(*value));
  view.value = raw.distinct;
  view.shown.push_back(Shown::distinct);
  return {};
}

/// The shortest text that reads back as the same real.
std::string real_text(usdt::ExpressionType type, double real) {
  return type == usdt::ExpressionType::real32 ? fmt::format("{}", static_cast<float>(real)) : fmt::format("{}", real);
}

std::int64_t whole(const usdt::TableKey& key) {
  if (const auto* number = std::get_if<std::uint64_t>(&key)) return static_cast<std::int64_t>(*number);
  const auto* number = std::get_if<std::int64_t>(&key);
  return number ? *number : 0;
}

usdt::Bucket bucket_of(const View& view, std::int64_t key) {
  if (view.latency) return usdt::Bucket::log2(key, kLatencySubBits);
  return view.histogram == Histogram::log2 ? usdt::Bucket::log2(key, view.sub_bits)
                                           : usdt::Bucket::linear(key, view.from, view.to, view.step);
}

usdt::RealBucket bucket_of(const View& view, usdt::ExpressionType reals, std::int64_t key) {
  return view.histogram == Histogram::log2 ? usdt::RealBucket::log2(reals, key, view.sub_bits)
                                           : usdt::RealBucket::linear(key, view.from, view.to, view.step, view.digits);
}

void fold(const View& view, const std::optional<usdt::ExpressionType>& reals, const usdt::TableRow& row,
          ShownRow& into) {
  into.add(row);
  ++into.distinct;
  if (!view.has_buckets()) return;
  const std::int64_t key = whole(row.keys.back());
  into.bars.push_back({key, range_of(view, reals, key, key), row.count});
}

/// Of 1000 durations so many are at most that.
usdt::Int128 quantile(const ShownRow& row, unsigned permille) {
  const usdt::Int128 rank = (static_cast<usdt::Int128>(row.count) * permille + 999) / 1000;
  usdt::Int128 passed = 0;
  for (const ShownRow::Bar& bar : row.bars) {
    passed += bar.count;
    if (passed >= rank) return std::min(std::get<usdt::Bucket>(bar.range).last, row.maximum);
  }
  return row.maximum;
}

/// Of a percentile; 0: it is none.
unsigned permille_of(Shown shown) {
  switch (shown) {
    case Shown::p50:
      return 500;
    case Shown::p90:
      return 900;
    case Shown::p99:
      return 990;
    case Shown::p999:
      return 999;
    default:
      return 0;
  }
}

/// "850ns", "12.3us", "1.50s"
std::string duration_text(usdt::Int128 ns) {
  const auto number = static_cast<double>(ns);
  if (ns < 1000) return decimal(ns) + "ns";
  if (ns < 1'000'000) return fmt::format("{:.1f}us", number / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.2f}ms", number / 1e6);
  return fmt::format("{:.3f}s", number / 1e9);
}

/// A number that orders reals.
std::int64_t order_of(double real) {
  const auto bits = std::bit_cast<std::int64_t>(real);
  return bits >= 0 ? bits : std::numeric_limits<std::int64_t>::min() - bits;
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

/// "4K" where that is exact.
std::string short_number(usdt::Int128 number) {
  constexpr std::string_view kUnits = "KMGTPE";
  std::string unit;
  for (const char each : kUnits) {
    if (number == 0 || number % 1024 != 0) break;
    number /= 1024;
    unit = each;
  }
  return decimal(number) + unit;
}

}  // namespace

bool View::is_about_durations() const {
  if (latency) return true;
  if (!question || !question->value) return false;
  const usdt::ExpressionNode& node = question->value->root;
  return node.op == usdt::Operator::field && static_cast<usdt::HitField>(node.bits) == usdt::HitField::duration;
}

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
  view.slowest = raw.slowest;
  if (!wanted && raw.top)
    return usdt::fail(ErrorKind::invalid_argument, "--top is about a table: see --by, --sum and --hist");
  if (raw.top) view.top = *raw.top;
  view.folded = raw.folded;
  for (const usdt::Expression& key : question->keys) {
    view.user_stacks |= is_field(key, usdt::HitField::ustack);
    view.kernel_stacks |= is_field(key, usdt::HitField::kstack);
  }
  if (auto sense = check_folded(view); !sense) return usdt::fail(sense.error());
  if (wanted) view.question = std::move(question);
  if (!wanted) view.shown.clear();
  return view;
}

usdt::Int128 weight_of(const View& view, const ShownRow& row) {
  const Shown by = view.shown.size() > 1 ? view.shown[1] : Shown::count;
  if (const auto real = row.real(by)) return order_of(*real);
  switch (by) {
    case Shown::count:
      return row.count;
    case Shown::sum:
      return row.sum;
    case Shown::average: {
      constexpr int kParts = 1 << 16;  // of one, so that averages that differ are in order
      return row.sum * kParts / static_cast<usdt::Int128>(row.count);
    }
    case Shown::minimum:
      return row.minimum;
    case Shown::maximum:
      return row.maximum;
    case Shown::distinct:
      return row.distinct;
    case Shown::p50:
    case Shown::p90:
    case Shown::p99:
    case Shown::p999:
      return quantile(row, permille_of(by));
  }
  return 0;
}

std::optional<double> ShownRow::real(Shown shown) const {
  const bool is_real = type == usdt::ExpressionType::real32 || type == usdt::ExpressionType::real64;
  if (!is_real) return std::nullopt;
  switch (shown) {
    case Shown::sum:
      return real_sum.value();
    case Shown::average:
      return real_sum.value() / static_cast<double>(count);
    case Shown::minimum:
    case Shown::maximum:
      return usdt::real_of_extreme(*type, shown == Shown::minimum ? minimum : maximum);
    case Shown::count:
    case Shown::distinct:
    case Shown::p50:
    case Shown::p90:
    case Shown::p99:
    case Shown::p999:
      break;
  }
  return std::nullopt;
}

Range range_of(const View& view, const std::optional<usdt::ExpressionType>& reals, std::int64_t key,
               std::int64_t last) {
  if (reals) return usdt::RealBucket{bucket_of(view, *reals, key).first, bucket_of(view, *reals, last).end};
  return usdt::Bucket{bucket_of(view, key).first, bucket_of(view, last).last};
}

std::vector<ShownRow> arrange(const View& view, const usdt::PlannedTable& table,
                              const std::vector<usdt::TableRow>& rows) {
  std::map<std::vector<usdt::TableKey>, ShownRow> folded;
  const auto reals = table.keys.empty() ? std::nullopt : table.keys.back().ranges_of;
  for (const usdt::TableRow& row : rows) {
    std::vector<usdt::TableKey> keys = row.keys;
    if (view.folds_last_key()) keys.pop_back();
    ShownRow& into = folded[keys];
    into.keys = std::move(keys);
    into.type = table.value;
    fold(view, reals, row, into);
  }
  std::vector<ShownRow> all;
  for (auto& [keys, row] : folded) {
    std::ranges::sort(row.bars, {}, &ShownRow::Bar::key);
    all.push_back(std::move(row));
  }
  std::ranges::stable_sort(
      all, [&](const ShownRow& a, const ShownRow& b) { return weight_of(view, a) > weight_of(view, b); });
  return all;
}

std::string header_of(Shown shown, const View& view) {
  switch (shown) {
    case Shown::count:
      return "COUNT";
    case Shown::sum:
      return fmt::format("SUM({})", view.value);
    case Shown::average:
      return fmt::format("AVG({})", view.value);
    case Shown::minimum:
      return fmt::format("MIN({})", view.value);
    case Shown::maximum:
      return view.latency ? "MAX" : fmt::format("MAX({})", view.value);
    case Shown::distinct:
      return fmt::format("DISTINCT({})", view.value);
    case Shown::p50:
      return "P50";
    case Shown::p90:
      return "P90";
    case Shown::p99:
      return "P99";
    case Shown::p999:
      return "P99.9";
  }
  return {};
}

std::string decimal(const usdt::Int128& number) {
#ifdef __SIZEOF_INT128__
  return fmt::format("{}", number);
#else
  return number.str();
#endif
}

std::string number_of(Shown shown, const ShownRow& row) {
  if (const auto real = row.real(shown)) {
    const bool added_up = shown == Shown::sum || shown == Shown::average;
    return real_text(added_up ? usdt::ExpressionType::real64 : *row.type, *real);
  }
  switch (shown) {
    case Shown::count:
      return fmt::format("{}", row.count);
    case Shown::sum:
      return decimal(row.sum);
    case Shown::average: {
      const usdt::Int128 count = row.count;
      if (row.sum % count == 0) return decimal(row.sum / count);
      const usdt::Int128 size = row.sum < 0 ? -row.sum : row.sum;
      const usdt::Int128 tenths = size / count * 10 + (size % count * 20 + count) / (2 * count);  // the nearest
      return fmt::format("{}{}.{}", row.sum < 0 && tenths > 0 ? "-" : "", decimal(tenths / 10),
                         static_cast<int>(tenths % 10));
    }
    case Shown::minimum:
      return decimal(row.minimum);
    case Shown::maximum:
      return decimal(row.maximum);
    case Shown::distinct:
      return fmt::format("{}", row.distinct);
    case Shown::p50:
    case Shown::p90:
    case Shown::p99:
    case Shown::p999:
      return decimal(quantile(row, permille_of(shown)));
  }
  return {};
}

std::string shown_number(Shown shown, const View& view, const ShownRow& row) {
  if (!view.is_about_durations()) return number_of(shown, row);
  switch (shown) {
    case Shown::count:
    case Shown::distinct:
      return number_of(shown, row);
    case Shown::sum:
      return duration_text(row.sum);
    case Shown::average:
      return duration_text(row.sum / static_cast<usdt::Int128>(row.count));
    case Shown::minimum:
      return duration_text(row.minimum);
    case Shown::maximum:
      return duration_text(row.maximum);
    case Shown::p50:
    case Shown::p90:
    case Shown::p99:
    case Shown::p999:
      return duration_text(quantile(row, permille_of(shown)));
  }
  return {};
}

std::string key_text(const usdt::AttachPlan& plan, const usdt::TableColumn& column, const usdt::TableKey& key) {
  if (const auto* text = std::get_if<usdt::TableText>(&key)) {
    if (column.field) return text->bytes;
    const auto whole = text->truncated ? usdt::without_partial_utf8(text->bytes) : text->bytes;
    return usdt::tools::quoted(whole) + (text->truncated ? "..." : "");
  }
  if (column.field == usdt::HitField::probe)
    return full_name(plan, plan.probes[usdt::Index<usdt::PlannedProbe>(static_cast<std::uint32_t>(whole(key)))]);
  if (const auto* real = std::get_if<usdt::TableReal>(&key)) return real_text(column.type, real->value);
  const auto* wide = std::get_if<std::uint64_t>(&key);
  if (column.form == usdt::KeyForm::ipv4) return ipv4_text(static_cast<std::uint64_t>(whole(key)));
  if (column.form == usdt::KeyForm::hex || column.field == usdt::HitField::ip)
    return fmt::format("{:#x}", static_cast<std::uint64_t>(whole(key)));
  if (column.arg) {
    const auto bits = static_cast<std::uint64_t>(whole(key));
    if (const std::string_view word = usdt::enumerator_name(*column.arg, bits); !word.empty()) return std::string(word);
    if (looks_like_address(*column.arg, bits)) return fmt::format("{:#x}", bits);
  }
  return wide ? fmt::format("{}", *wide) : fmt::format("{}", whole(key));
}

namespace {

std::string range_text(const View& view, const usdt::RealBucket& range) {
  const bool linear = view.histogram == Histogram::linear;
  if (linear && std::isinf(range.first)) return fmt::format("(..., {})", range.end);
  if (linear && std::isinf(range.end)) return fmt::format("[{}, ...)", range.first);
  if (range.first == range.end) return fmt::format("[{}]", range.first);
  if (linear) return fmt::format("[{}, {})", range.first, range.end);
  // Of negative numbers it is the other end that belongs to it.
  return fmt::format("{}{}, {}{}", range.first < 0 ? "(" : "[", range.first, range.end, range.end <= 0 ? "]" : ")");
}

std::string range_text(const View& view, const usdt::Bucket& bucket) {
  const bool linear = view.histogram == Histogram::linear;
  if (linear && bucket.first == std::numeric_limits<std::int64_t>::min())
    return fmt::format("(..., {})", short_number(bucket.last + 1));
  if (linear && bucket.last == std::numeric_limits<std::uint64_t>::max())
    return fmt::format("[{}, ...)", short_number(bucket.first));
  if (bucket.first == bucket.last) return fmt::format("[{}]", short_number(bucket.first));
  // Of negative numbers the power of 2 is the other end.
  if (!linear && bucket.last < 0)
    return fmt::format("({}, {}]", short_number(bucket.first - 1), short_number(bucket.last));
  return fmt::format("[{}, {})", short_number(bucket.first), short_number(bucket.last + 1));
}

}  // namespace

std::string range_text(const View& view, const Range& range) {
  return std::visit([&](const auto& of) { return range_text(view, of); }, range);
}

bool are_neighbours(const ShownRow::Bar& a, const ShownRow::Bar& b) {
  if (a.key + 1 == b.key) return true;  // what is left are the ends of linear ones
  if (const auto* reals = std::get_if<usdt::RealBucket>(&a.range))
    return reals->end == std::get<usdt::RealBucket>(b.range).first;
  return std::get<usdt::Bucket>(a.range).last + 1 == std::get<usdt::Bucket>(b.range).first;
}

}  // namespace usdt_trace
