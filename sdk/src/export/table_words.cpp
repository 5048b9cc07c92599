// SPDX-License-Identifier: BSD-2-Clause
#include "export/table_words.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "export/meaning.hpp"
#include "export/output.hpp"
#include "export/value_text.hpp"
#include "io/escape.hpp"
#include "usdt/utf8.hpp"

namespace usdt::exports {
namespace {

/// The shortest text that reads back as the same real.
std::string real_text(ExpressionType type, double real) {
  return type == ExpressionType::real32 ? fmt::format("{}", static_cast<float>(real)) : fmt::format("{}", real);
}

/// "850ns", "12.3us", "1.50s"
std::string duration_text(Int128 ns) {
  const auto number = static_cast<double>(ns);
  if (ns < 1000) return decimal_text(ns) + "ns";
  if (ns < 1'000'000) return fmt::format("{:.1f}us", number / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.2f}ms", number / 1e6);
  return fmt::format("{:.3f}s", number / 1e9);
}

/// "4K" where that is exact.
std::string short_number(Int128 number) {
  constexpr std::string_view kUnits = "KMGTPE";
  std::string unit;
  for (const char each : kUnits) {
    if (number == 0 || number % 1024 != 0) break;
    number /= 1024;
    unit = each;
  }
  return decimal_text(number) + unit;
}

}  // namespace

std::string rate_text(double per_second) {
  return fmt::format("{:.{}f}", per_second, per_second >= 100 || per_second == 0 ? 0 : per_second >= 10 ? 1 : 2);
}

std::string header_of(RowNumber shown, const View& view) {
  switch (shown) {
    case RowNumber::count:
      return "COUNT";
    case RowNumber::sum:
      return view.latency ? "TOTAL" : fmt::format("SUM({})", view.value);
    case RowNumber::average:
      return fmt::format("AVG({})", view.value);
    case RowNumber::minimum:
      return fmt::format("MIN({})", view.value);
    case RowNumber::maximum:
      return view.latency ? "MAX" : fmt::format("MAX({})", view.value);
    case RowNumber::distinct:
      return fmt::format("DISTINCT({})", view.value);
    case RowNumber::p50:
      return "P50";
    case RowNumber::p90:
      return "P90";
    case RowNumber::p99:
      return "P99";
    case RowNumber::p999:
      return "P99.9";
    case RowNumber::growth:
      return "GROWTH";
    case RowNumber::error:
      return "ERROR";
  }
  return {};
}

std::string number_text(RowNumber shown, const ArrangedRow& row) {
  const auto real = row.real(shown);
  if (!real) return decimal_text(row, shown);
  const bool is_value = shown == RowNumber::minimum || shown == RowNumber::maximum;
  return real_text(is_value ? *row.type : ExpressionType::real64, *real);
}

std::string shown_number(RowNumber shown, const View& view, const ArrangedRow& row) {
  if (shown == RowNumber::distinct && row.distinct_at_least) return number_text(shown, row) + "+";
  const bool is_count = shown == RowNumber::count || shown == RowNumber::distinct;
  return view.is_about_durations() && !is_count ? duration_text(row.integer(shown)) : number_text(shown, row);
}

std::string plain_key_text(const AttachPlan& plan, const TableColumn& column, const TableKey& key) {
  const auto* text = std::get_if<TableText>(&key);
  if (text == nullptr) return key_text(plan, column, key);
  return text->truncated ? std::string(without_partial_utf8(text->bytes)) + "..." : text->bytes;
}

std::string_view name_of_key(const TableColumn& column, const TableKey& key) {
  const bool is_number = std::holds_alternative<std::int64_t>(key) || std::holds_alternative<std::uint64_t>(key);
  if (!column.arg || column.form != KeyForm::decimal || !is_number) return {};
  return enumerator_name(*column.arg, static_cast<std::uint64_t>(integer_of(key)));
}

std::string key_text(const AttachPlan& plan, const TableColumn& column, const TableKey& key) {
  if (const auto* text = std::get_if<TableText>(&key)) {
    if (column.field) return io::escaped(text->bytes);
    const auto whole = text->truncated ? without_partial_utf8(text->bytes) : text->bytes;
    return io::quoted(whole) + (text->truncated ? "..." : "");
  }
  if (column.field == HitField::probe)
    return full_name(plan, plan.probes[Index<PlannedProbe>(static_cast<std::uint32_t>(integer_of(key)))]);
  if (const auto* real = std::get_if<TableReal>(&key)) return real_text(column.type, real->value);
  const auto* wide = std::get_if<std::uint64_t>(&key);
  if (column.form == KeyForm::ipv4) return ipv4_text(static_cast<std::uint64_t>(integer_of(key)));
  if (column.form == KeyForm::hex || (column.field && info_of(*column.field).form == HitFieldForm::address))
    return fmt::format("{:#x}", static_cast<std::uint64_t>(integer_of(key)));
  if (const std::string_view word = name_of_key(column, key); !word.empty()) return std::string(word);
  if (column.arg) {
    const auto bits = static_cast<std::uint64_t>(integer_of(key));
    if (column.arg->type.kind == TypeKind::boolean && bits <= 1) return bits == 1 ? "true" : "false";
    const auto meant = text_by_meaning(*column.arg, wide ? Value(*wide) : Value(integer_of(key)));
    if (meant) return *meant;
    if (looks_like_address(*column.arg, bits)) return fmt::format("{:#x}", bits);
  }
  return wide ? fmt::format("{}", *wide) : fmt::format("{}", integer_of(key));
}

namespace {

std::string range_text(const View& view, const RealBucket& range) {
  const bool linear = view.histogram == Histogram::linear;
  if (linear && std::isinf(range.first)) return fmt::format("(..., {})", range.end);
  if (linear && std::isinf(range.end)) return fmt::format("[{}, ...)", range.first);
  if (range.first == range.end) return fmt::format("[{}]", range.first);
  if (linear) return fmt::format("[{}, {})", range.first, range.end);
  // A range of negative numbers contains its upper end, the others their lower one.
  return fmt::format("{}{}, {}{}", range.first < 0 ? "(" : "[", range.first, range.end, range.end <= 0 ? "]" : ")");
}

std::string range_text(const View& view, const Bucket& bucket) {
  const bool linear = view.histogram == Histogram::linear;
  if (linear && bucket.first == std::numeric_limits<std::int64_t>::min())
    return fmt::format("(..., {})", short_number(bucket.last + 1));
  if (linear && bucket.last == std::numeric_limits<std::uint64_t>::max())
    return fmt::format("[{}, ...)", short_number(bucket.first));
  if (bucket.first == bucket.last) return fmt::format("[{}]", short_number(bucket.first));
  // A range of negative numbers has its power of 2 at the upper end.
  if (!linear && bucket.last < 0)
    return fmt::format("({}, {}]", short_number(bucket.first - 1), short_number(bucket.last));
  return fmt::format("[{}, {})", short_number(bucket.first), short_number(bucket.last + 1));
}

}  // namespace

std::string range_text(const View& view, const BucketRange& range) {
  return std::visit([&](const auto& of) { return range_text(view, of); }, range);
}

}  // namespace usdt::exports
