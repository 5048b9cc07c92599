// SPDX-License-Identifier: BSD-2-Clause
#include "view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "common/escape.hpp"
#include "output.hpp"
#include "rates.hpp"

namespace usdt_trace {
namespace {

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
  const auto* last = row.keys.empty() ? nullptr : std::get_if<usdt::TableText>(&row.keys.back());
  into.distinct_at_least |= last != nullptr && last->truncated;
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
    case Shown::count:
    case Shown::sum:
    case Shown::average:
    case Shown::minimum:
    case Shown::maximum:
    case Shown::distinct:
      break;
  }
  return 0;
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

usdt::Int128 weight_of(const View& view, const ShownRow& row) {
  const Shown by = view.latency ? Shown::sum : view.shown.size() > 1 ? view.shown[1] : Shown::count;
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
                              const std::vector<usdt::TableRow>& rows, const Rates* rates) {
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
  if (view.rates && rates != nullptr) {
    for (ShownRow& row : all) row.per_second = rates->of(row.keys);
  }
  const bool by_rate = view.by_rate && rates != nullptr;
  std::ranges::stable_sort(all, [&](const ShownRow& a, const ShownRow& b) {
    if (by_rate && a.per_second != b.per_second) return a.per_second > b.per_second;
    return weight_of(view, a) > weight_of(view, b);
  });
  return all;
}

std::string rate_text(double per_second) {
  return fmt::format("{:.{}f}", per_second, per_second >= 100 || per_second == 0 ? 0 : per_second >= 10 ? 1 : 2);
}

std::string header_of(Shown shown, const View& view) {
  switch (shown) {
    case Shown::count:
      return "COUNT";
    case Shown::sum:
      return view.latency ? "TOTAL" : fmt::format("SUM({})", view.value);
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
  if (shown == Shown::distinct && row.distinct_at_least) return number_of(shown, row) + "+";
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
