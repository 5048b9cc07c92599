// SPDX-License-Identifier: BSD-2-Clause
#include "export/clickhouse_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "export/frames.hpp"
#include "export/table_words.hpp"
#include "io/escape.hpp"

namespace usdt::exports::clickhouse {
namespace {

/// Appends text that is printable as a string of JSON.
void append_printable(std::string& out, std::string_view text) {
  out += '"';
  std::size_t written = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '"' && text[at] != '\\') continue;
    out.append(text.substr(written, at - written)) += '\\';
    written = at;
  }
  out.append(text.substr(written)) += '"';
}

template <class Number>
void append_digits(std::string& out, Number number) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

template <class Numbers, class Append>
void append_list(std::string& out, const Numbers& numbers, const Append& append) {
  out += '[';
  for (const auto& each : numbers) {
    if (out.back() != '[') out += ',';
    append(each);
  }
  out += ']';
}

std::string real_text(double number) {
  if (std::isnan(number)) return "\"nan\"";
  if (std::isinf(number)) return number > 0 ? "\"inf\"" : "\"-inf\"";
  return fmt::format("{}", number);
}

/// The columns of counts by index: `positive_index` and `positive_count`.
void write_counts(RowWriter& row, std::string_view sign, const std::map<std::int32_t, std::uint64_t>& counts) {
  if (counts.empty()) return;
  std::string list;
  append_list(list, counts, [&](const auto& each) { append_digits(list, each.first); });
  row.written(fmt::format("{}_index", sign), list);
  list.clear();
  append_list(list, counts, [&](const auto& each) { append_digits(list, each.second); });
  row.written(fmt::format("{}_count", sign), list);
}

void write_histogram(RowWriter& row, const metrics::Histogram& histogram) {
  if (histogram.scale) {
    const metrics::EqualRatios fine = metrics::put_in_equal_ratios(histogram);
    row.number("scale", fine.scale);
    row.number("zeros", fine.zeros);
    write_counts(row, "positive", fine.positive);
    write_counts(row, "negative", fine.negative);
    return;
  }
  std::string list;
  const auto& buckets = histogram.buckets;
  append_list(list, buckets, [&](const auto& each) { list += real_text(each.high * histogram.factor); });
  row.written("bounds", list);
  list.clear();
  append_list(list, buckets, [&](const auto& each) { append_digits(list, each.count); });
  row.written("bound_counts", list);
}

}  // namespace

void append_string(std::string& out, std::string_view text) {
  io::is_printable(text) ? append_printable(out, text) : append_printable(out, io::printable(text));
}

void append_number(std::string& out, std::int64_t number) { append_digits(out, number); }
void append_number(std::string& out, std::uint64_t number) { append_digits(out, number); }

void RowWriter::real(std::string_view name, double value) { column(name), out_ += real_text(value); }

void RowWriter::frames(std::string_view name, const Stack& stack) {
  column(name);
  append_list(out_, frame_texts(stack), [this](const std::string& line) { append_string(out_, line); });
}

void ValueMaps::begin_pair(std::string& map, std::string_view name) {
  if (map.back() != '{') map += ',';
  append_string(map, name);
  map += ':';
}

void ValueMaps::whole(std::int64_t number) {
  if (depth_ > 0) return json_.whole(number);
  begin_pair(nums_, name_);
  append_digits(nums_, number);
}

void ValueMaps::natural(std::uint64_t number) {
  if (depth_ > 0) return json_.natural(number);
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return text(std::to_string(number));
  whole(static_cast<std::int64_t>(number));
}

void ValueMaps::real(double number) {
  if (depth_ > 0) return json_.real(number);
  text(std::isfinite(number) ? fmt::format("{}", number) : std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

void ValueMaps::text(std::string_view text) {
  if (depth_ > 0) return json_.text(text);
  begin_pair(args_, name_);
  append_string(args_, text);
}

void ValueMaps::cut_text(std::string_view text) { this->text(std::string(text) + "..."); }

void ValueMaps::error(std::string_view reason) {
  if (depth_ > 0) return json_.error(reason);
  name_ += ".error";
  text(reason);
}

void ValueMaps::frames(const Stack& stack) {
  std::string lines;
  for (const std::string& line : frame_texts(stack)) lines.append(lines.empty() ? "" : ";").append(line);
  text(lines);
}

void ValueMaps::end_level() {
  if (--depth_ > 0) return;
  fmt::memory_buffer safe;
  io::append_json(safe, {nested_.GetString(), nested_.GetSize()});
  begin_pair(args_, name_);
  append_printable(args_, {safe.data(), safe.size()});
  nested_.Clear();
  writer_.Reset(nested_);
}

void ValueMaps::take(RowWriter& row) {
  for (auto& [name, map] : {std::pair("args", &args_), std::pair("nums", &nums_)}) {
    if (map->size() == 1) continue;
    *map += '}';
    row.written(name, *map);
    map->resize(1);
  }
}

void write_table_row(RowWriter& row, const AttachPlan& plan, const View& view, const PlannedTable& table,
                     const ArrangedRow& arranged) {
  std::string keys = "{";
  for (std::size_t i = 0; i < view.shown_keys(table); ++i) {
    if (i > 0) keys += ',';
    append_string(keys, table.keys[i].label);
    keys += ':';
    append_string(keys, plain_key_text(plan, table.keys[i], arranged.keys[i]));
  }
  row.written("keys", keys + "}");
  row.number("count", arranged.count);
  const auto add = [&](std::string_view column, RowNumber which) {
    const auto real = arranged.real(which);
    real ? row.real(column, *real) : row.written(column, decimal_text(arranged.integer(which)));
  };
  const auto shows = [&](RowNumber each) { return std::ranges::find(view.shown, each) != view.shown.end(); };
  if (table.value) add("sum", RowNumber::sum);
  if (shows(RowNumber::minimum)) add("min", RowNumber::minimum);
  if (shows(RowNumber::maximum)) add("max", RowNumber::maximum);
  if (shows(RowNumber::distinct)) row.number("distinct", arranged.distinct);
  if (view.is_about_durations()) row.text("unit", "ns");
  if (view.has_buckets()) write_histogram(row, metrics::histogram_of(view, table, arranged));
}

}  // namespace usdt::exports::clickhouse
