// SPDX-License-Identifier: BSD-2-Clause
#include "view_words.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "common/escape.hpp"
#include "output.hpp"
#include "value_text.hpp"

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

/// "850ns", "12.3us", "1.50s"
std::string duration_text(usdt::Int128 ns) {
  const auto number = static_cast<double>(ns);
  if (ns < 1000) return usdt::decimal_text(ns) + "ns";
  if (ns < 1'000'000) return fmt::format("{:.1f}us", number / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.2f}ms", number / 1e6);
  return fmt::format("{:.3f}s", number / 1e9);
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
  return usdt::decimal_text(number) + unit;
}

}  // namespace

std::string rate_text(double per_second) {
  return fmt::format("{:.{}f}", per_second, per_second >= 100 || per_second == 0 ? 0 : per_second >= 10 ? 1 : 2);
}

std::string header_of(usdt::RowNumber shown, const usdt::View& view) {
  switch (shown) {
    case usdt::RowNumber::count:
      return "COUNT";
    case usdt::RowNumber::sum:
      return view.latency ? "TOTAL" : fmt::format("SUM({})", view.value);
    case usdt::RowNumber::average:
      return fmt::format("AVG({})", view.value);
    case usdt::RowNumber::minimum:
      return fmt::format("MIN({})", view.value);
    case usdt::RowNumber::maximum:
      return view.latency ? "MAX" : fmt::format("MAX({})", view.value);
    case usdt::RowNumber::distinct:
      return fmt::format("DISTINCT({})", view.value);
    case usdt::RowNumber::p50:
      return "P50";
    case usdt::RowNumber::p90:
      return "P90";
    case usdt::RowNumber::p99:
      return "P99";
    case usdt::RowNumber::p999:
      return "P99.9";
  }
  return {};
}

std::string number_text(usdt::RowNumber shown, const usdt::ArrangedRow& row) {
  const auto real = row.real(shown);
  if (!real) return usdt::decimal_text(row, shown);
  const bool added_up = shown == usdt::RowNumber::sum || shown == usdt::RowNumber::average;
  return real_text(added_up ? usdt::ExpressionType::real64 : *row.type, *real);
}

std::string shown_number(usdt::RowNumber shown, const usdt::View& view, const usdt::ArrangedRow& row) {
  if (shown == usdt::RowNumber::distinct && row.distinct_at_least) return number_text(shown, row) + "+";
  const bool is_count = shown == usdt::RowNumber::count || shown == usdt::RowNumber::distinct;
  return view.is_about_durations() && !is_count ? duration_text(row.integer(shown)) : number_text(shown, row);
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
  if (column.form == usdt::KeyForm::hex ||
      (column.field && usdt::info_of(*column.field).form == usdt::HitFieldForm::address))
    return fmt::format("{:#x}", static_cast<std::uint64_t>(whole(key)));
  if (column.arg) {
    const auto bits = static_cast<std::uint64_t>(whole(key));
    if (const std::string_view word = usdt::enumerator_name(*column.arg, bits); !word.empty()) return std::string(word);
    if (looks_like_address(*column.arg, bits)) return fmt::format("{:#x}", bits);
  }
  return wide ? fmt::format("{}", *wide) : fmt::format("{}", whole(key));
}

namespace {

std::string range_text(const usdt::View& view, const usdt::RealBucket& range) {
  const bool linear = view.histogram == usdt::Histogram::linear;
  if (linear && std::isinf(range.first)) return fmt::format("(..., {})", range.end);
  if (linear && std::isinf(range.end)) return fmt::format("[{}, ...)", range.first);
  if (range.first == range.end) return fmt::format("[{}]", range.first);
  if (linear) return fmt::format("[{}, {})", range.first, range.end);
  // Of negative numbers it is the other end that belongs to it.
  return fmt::format("{}{}, {}{}", range.first < 0 ? "(" : "[", range.first, range.end, range.end <= 0 ? "]" : ")");
}

std::string range_text(const usdt::View& view, const usdt::Bucket& bucket) {
  const bool linear = view.histogram == usdt::Histogram::linear;
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

std::string range_text(const usdt::View& view, const usdt::BucketRange& range) {
  return std::visit([&](const auto& of) { return range_text(view, of); }, range);
}

}  // namespace usdt_trace
