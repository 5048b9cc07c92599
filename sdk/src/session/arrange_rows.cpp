// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "usdt/view.hpp"

namespace usdt {
inline namespace v1 {
namespace {

Bucket bucket_of(const View& view, std::int64_t key) {
  if (view.latency) return Bucket::log2(key, kLatencySubBits);
  return view.histogram == Histogram::log2 ? Bucket::log2(key, view.sub_bits)
                                           : Bucket::linear(key, view.from, view.to, view.step);
}

RealBucket bucket_of(const View& view, ExpressionType reals, std::int64_t key) {
  return view.histogram == Histogram::log2 ? RealBucket::log2(reals, key, view.sub_bits)
                                           : RealBucket::linear(key, view.from, view.to, view.step, view.digits);
}

void fold(const View& view, const std::optional<ExpressionType>& reals, const TableRow& row, ArrangedRow& into) {
  into.add(row);
  ++into.distinct;
  const auto* last = row.keys.empty() ? nullptr : std::get_if<TableText>(&row.keys.back());
  into.distinct_at_least |= last != nullptr && last->truncated;
  if (!view.has_buckets()) return;
  const std::int64_t key = integer_of(row.keys.back());
  into.bars.push_back({key, range_of(view, reals, key, key), row.count});
}

/// The share of hits that a percentile is about, of 1000; 0: it is none.
unsigned permille_of(RowNumber shown) {
  switch (shown) {
    case RowNumber::p50:
      return 500;
    case RowNumber::p90:
      return 900;
    case RowNumber::p99:
      return 990;
    case RowNumber::p999:
      return 999;
    case RowNumber::count:
    case RowNumber::sum:
    case RowNumber::average:
    case RowNumber::minimum:
    case RowNumber::maximum:
    case RowNumber::distinct:
    case RowNumber::growth:
    case RowNumber::error:
      break;
  }
  return 0;
}

/// The number that rows are ordered by.
RowNumber order_number(const View& view) {
  if (view.grows()) return RowNumber::growth;
  return view.latency ? RowNumber::sum : view.shown.size() > 1 ? view.shown[1] : RowNumber::count;
}

/// A number that orders reals.
std::int64_t order_of(double real) {
  const auto bits = std::bit_cast<std::int64_t>(real);
  return bits >= 0 ? bits : std::numeric_limits<std::int64_t>::min() - bits;
}

}  // namespace

bool View::is_about_durations() const {
  if (latency) return true;
  if (!question || !question->value) return false;
  const ExpressionNode& node = question->value->root;
  return node.op == Operator::field && static_cast<HitField>(node.bits) == HitField::duration;
}

bool View::grows() const { return std::ranges::find(shown, RowNumber::growth) != shown.end(); }

Int128 weight_of(const View& view, const ArrangedRow& row) {
  const RowNumber by = order_number(view);
  if (const auto real = row.real(by)) return order_of(*real);
  constexpr int kParts = 1 << 16;  // of one, so that averages that differ are in order
  return by == RowNumber::average ? row.sum * kParts / static_cast<Int128>(row.count) : row.integer(by);
}

std::optional<double> ArrangedRow::real(RowNumber shown) const {
  const bool is_real = type == ExpressionType::real32 || type == ExpressionType::real64;
  if (!is_real) return std::nullopt;
  switch (shown) {
    case RowNumber::sum:
      return real_sum.value();
    case RowNumber::average:
      return real_sum.value() / static_cast<double>(count);
    case RowNumber::minimum:
    case RowNumber::maximum:
      return real_of_extreme(*type, shown == RowNumber::minimum ? minimum : maximum);
    case RowNumber::growth:
      return growth;
    case RowNumber::error:
      return std::sqrt(variance);
    case RowNumber::count:
    case RowNumber::distinct:
    case RowNumber::p50:
    case RowNumber::p90:
    case RowNumber::p99:
    case RowNumber::p999:
      break;
  }
  return std::nullopt;
}

Int128 ArrangedRow::integer(RowNumber number) const {
  switch (number) {
    case RowNumber::count:
      return count;
    case RowNumber::sum:
      return sum;
    case RowNumber::average:
      return sum / static_cast<Int128>(count);
    case RowNumber::minimum:
      return minimum;
    case RowNumber::maximum:
      return maximum;
    case RowNumber::distinct:
      return distinct;
    case RowNumber::p50:
    case RowNumber::p90:
    case RowNumber::p99:
    case RowNumber::p999:
      return percentile(permille_of(number));
    case RowNumber::growth:
      return static_cast<Int128>(std::llround(growth));
    case RowNumber::error:
      return static_cast<Int128>(std::llround(std::ceil(std::sqrt(variance))));
  }
  return 0;
}

Int128 ArrangedRow::percentile(unsigned permille) const {
  const Int128 rank = (static_cast<Int128>(count) * permille + 999) / 1000;
  Int128 passed = 0;
  for (const Bar& bar : bars) {
    passed += bar.count;
    if (passed >= rank) return std::min(std::get<Bucket>(bar.range).last, maximum);
  }
  return maximum;
}

BucketRange range_of(const View& view, const std::optional<ExpressionType>& reals, std::int64_t key,
                     std::int64_t last) {
  if (reals) return RealBucket{bucket_of(view, *reals, key).first, bucket_of(view, *reals, last).end};
  return Bucket{bucket_of(view, key).first, bucket_of(view, last).last};
}

std::vector<ArrangedRow> arrange_rows(const View& view, const PlannedTable& table, const std::vector<TableRow>& rows,
                                      const HitRates* rates, const RowGrowth* growth) {
  std::map<std::vector<TableKey>, ArrangedRow> folded;
  const auto reals = table.keys.empty() ? std::nullopt : table.keys.back().ranges_of;
  for (const TableRow& row : rows) {
    std::vector<TableKey> keys = row.keys;
    if (view.folds_last_key()) keys.pop_back();
    ArrangedRow& into = folded[keys];
    into.keys = std::move(keys);
    into.type = table.value;
    fold(view, reals, row, into);
  }
  std::vector<ArrangedRow> all;
  for (auto& [keys, row] : folded) {
    std::ranges::sort(row.bars, {}, &ArrangedRow::Bar::key);
    all.push_back(std::move(row));
  }
  if (view.rates && rates != nullptr) {
    for (ArrangedRow& row : all) row.per_second = rates->of(row.keys);
  }
  if (view.grows()) {
    for (ArrangedRow& row : all) row.growth = growth != nullptr ? growth->of(row) : RowGrowth().of(row);
  }
  if (view.order == RowOrder::keys) return all;
  const bool by_rate = view.order == RowOrder::rate && rates != nullptr;
  std::ranges::stable_sort(all, [&](const ArrangedRow& a, const ArrangedRow& b) {
    if (by_rate && a.per_second != b.per_second) return a.per_second > b.per_second;
    return weight_of(view, a) > weight_of(view, b);
  });
  return all;
}

std::string decimal_text(const Int128& number) {
#ifdef __SIZEOF_INT128__
  return fmt::format("{}", number);
#else
  return number.str();
#endif
}

std::string decimal_text(const ArrangedRow& row, RowNumber number) {
  const Int128 count = row.count;
  if (number != RowNumber::average || row.sum % count == 0) return decimal_text(row.integer(number));
  const Int128 size = row.sum < 0 ? -row.sum : row.sum;
  const Int128 tenths = size / count * 10 + (size % count * 20 + count) / (2 * count);  // the nearest
  return fmt::format("{}{}.{}", row.sum < 0 && tenths > 0 ? "-" : "", decimal_text(tenths / 10),
                     static_cast<int>(tenths % 10));
}

bool are_neighbours(const ArrangedRow::Bar& a, const ArrangedRow::Bar& b) {
  if (a.key + 1 == b.key) return true;  // what is left are the ends of linear ones
  if (const auto* reals = std::get_if<RealBucket>(&a.range)) return reals->end == std::get<RealBucket>(b.range).first;
  return std::get<Bucket>(a.range).last + 1 == std::get<Bucket>(b.range).first;
}

}  // namespace v1
}  // namespace usdt
