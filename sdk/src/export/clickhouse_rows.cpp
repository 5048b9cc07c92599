// SPDX-License-Identifier: BSD-2-Clause
#include "export/clickhouse_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "export/frames.hpp"
#include "export/table_words.hpp"
#include "io/escape.hpp"

namespace usdt::exports::clickhouse {
namespace {

/// Adds counts by index: to `positive_index` and `positive_count`.
void add_counts(Array<std::int32_t>& indices, Array<std::uint64_t>& counts,
                const std::map<std::int32_t, std::uint64_t>& by_index) {
  for (const auto& [index, count] : by_index) indices.add(index), counts.add(count);
}

void add_histogram(TableRow& row, const metrics::Histogram& histogram) {
  if (histogram.scale) {
    const metrics::EqualRatios fine = metrics::put_in_equal_ratios(histogram);
    row.scale = static_cast<std::uint8_t>(fine.scale);
    row.zeros = fine.zeros;
    add_counts(row.positive_index, row.positive_count, fine.positive);
    add_counts(row.negative_index, row.negative_count, fine.negative);
    return;
  }
  for (const auto& each : histogram.buckets) {
    row.bounds.add(each.high / histogram.per_unit);
    row.bound_counts.add(each.count);
  }
}

/// Calls `use` with the text as UTF-8.
template <class Use>
void with_utf8(std::string_view text, const Use& use) {
  io::is_valid_utf8(text) ? use(text) : use(std::string_view(io::valid_utf8(text)));
}

}  // namespace

void ValueMaps::begin(std::string_view name) {
  with_utf8(name, [this](std::string_view utf8) { name_ = utf8; });
}

void ValueMaps::member(std::string_view name) {
  with_utf8(name, [this](std::string_view utf8) { json_.member(utf8); });
}

void ValueMaps::whole(std::int64_t number) {
  if (depth_ > 0) return json_.whole(number);
  nums_.add(name_, number);
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
  with_utf8(text, [this](std::string_view utf8) { depth_ > 0 ? json_.text(utf8) : args_.add(name_, {utf8}); });
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
  args_.add(name_, {{safe.data(), safe.size()}});
  nested_.Clear();
  writer_.Reset(nested_);
}

void add_frames(Array<Label>& texts, const Stack& stack) {
  for (const std::string& line : frame_texts(stack)) texts.add({io::valid_utf8(line)});
}

TableRow table_row(const AttachPlan& plan, const View& view, const PlannedTable& table, const ArrangedRow& arranged) {
  TableRow row{.count = arranged.count};
  for (std::size_t i = 0; i < view.shown_keys(table); ++i)
    row.keys.add(io::valid_utf8(table.keys[i].label),
                 {io::valid_utf8(plain_key_text(plan, table.keys[i], arranged.keys[i]))});
  const auto number = [&](RowNumber which) {
    const auto real = arranged.real(which);
    return real ? *real : static_cast<double>(arranged.integer(which));
  };
  const auto shows = [&](RowNumber each) { return std::ranges::find(view.shown, each) != view.shown.end(); };
  if (table.value) row.sum = number(RowNumber::sum);
  if (shows(RowNumber::minimum)) row.min = number(RowNumber::minimum);
  if (shows(RowNumber::maximum)) row.max = number(RowNumber::maximum);
  if (shows(RowNumber::distinct)) row.distinct = arranged.distinct;
  if (view.is_about_durations()) row.unit = {"ns"};
  if (view.has_buckets()) add_histogram(row, metrics::histogram_of(view, table, arranged));
  return row;
}

}  // namespace usdt::exports::clickhouse
