// SPDX-License-Identifier: BSD-2-Clause
// Tables and histograms as JSON (docs/json.md).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "export/frames.hpp"
#include "export/table_output.hpp"
#include "export/table_words.hpp"

namespace usdt::exports {
namespace {

using io::json_key;
using io::json_real;
using io::json_text;
using io::JsonWriter;

void number(JsonWriter& json, const std::string& digits) {
  json.RawValue(digits.data(), digits.size(), rapidjson::kNumberType);
}

std::string_view member_of(RowNumber shown) {
  switch (shown) {
    case RowNumber::count:
      return "count";
    case RowNumber::sum:
      return "sum";
    case RowNumber::average:
      return "avg";
    case RowNumber::minimum:
      return "min";
    case RowNumber::maximum:
      return "max";
    case RowNumber::distinct:
      return "distinct";
    case RowNumber::p50:
      return "p50";
    case RowNumber::p90:
      return "p90";
    case RowNumber::p99:
      return "p99";
    case RowNumber::p999:
      return "p99.9";
    case RowNumber::growth:
      return "growth";
    case RowNumber::error:
      return "error";
  }
  return {};
}

/// The frames, or why there are none.
void stack(JsonWriter& json, const TableStack& stack) {
  if (stack.names) return write_frames(json, *stack.names);
  json.StartObject();
  json_key(json, "error"), json_text(json, stack.why_none);
  json.EndObject();
}

/// Writes why the stack of a process ends before its outermost function, if it does.
void stack_end(JsonWriter& json, const std::vector<TableKey>& keys) {
  for (const TableKey& each : keys) {
    const auto* stack = std::get_if<TableStack>(&each);
    if (stack == nullptr || stack->kernel || !stack->names || stack->names->end == FrameIssue::none) continue;
    json_key(json, "ustack_end"), json_text(json, to_string(stack->names->end));
  }
}

/// A number as a number, whatever it is called; a text, and the name of a probe, as a string.
void key(JsonWriter& json, const AttachPlan& plan, const TableColumn& column, const TableKey& key) {
  if (const auto* text = std::get_if<TableText>(&key)) return json_text(json, text->bytes);
  if (const auto* frames = std::get_if<TableStack>(&key)) return stack(json, *frames);
  if (const auto* real = std::get_if<TableReal>(&key)) return json_real(json, real->value);
  if (column.field == HitField::probe || column.form == KeyForm::ipv4)
    return json_text(json, key_text(plan, column, key));
  if (const auto* wide = std::get_if<std::uint64_t>(&key)) {
    json.Uint64(*wide);
  } else {
    json.Int64(std::get<std::int64_t>(key));
  }
}

/// Which of the keys are texts that were cut.
void truncated(JsonWriter& json, const std::vector<TableKey>& keys) {
  bool any = false;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto* text = std::get_if<TableText>(&keys[i]);
    if (text == nullptr || !text->truncated) continue;
    if (!any) json_key(json, "truncated"), json.StartArray();
    any = true;
    json.Uint64(i);
  }
  if (any) json.EndArray();
}

/// Writes the names that keys have which are numbers.
void names(JsonWriter& json, const std::vector<TableColumn>& columns, const std::vector<TableKey>& keys) {
  bool any = false;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string_view name = name_of_key(columns[i], keys[i]);
    if (name.empty()) continue;
    if (!std::exchange(any, true)) json_key(json, "names"), json.StartObject();
    json_key(json, fmt::format("{}", i)), json_text(json, name);
  }
  if (any) json.EndObject();
}

void bounds(JsonWriter& json, const BucketRange& range) {
  if (const auto* reals = std::get_if<RealBucket>(&range)) {
    json_key(json, "low"), json_real(json, reals->first);
    json_key(json, "high"), json_real(json, reals->end);
    return;
  }
  const auto& bucket = std::get<Bucket>(range);
  json_key(json, "first"), number(json, decimal_text(bucket.first));
  json_key(json, "last"), number(json, decimal_text(bucket.last));
}

void bars(JsonWriter& json, const ArrangedRow& row) {
  json_key(json, "buckets"), json.StartArray();
  for (const ArrangedRow::Bar& bar : row.bars) {
    json.StartObject();
    bounds(json, bar.range);
    json_key(json, "count"), json.Uint64(bar.count);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

void write_slice(JsonWriter& json, const View& view, const HeatSlice& slice) {
  ArrangedRow row;
  for (const auto& [key, count] : slice.counts) {
    row.bars.push_back({key, range_of(view, slice.reals, key, key), count});
    row.count += count;
  }
  json_key(json, "count"), json.Uint64(row.count);
  bars(json, row);
}

void write_table(JsonWriter& json, const ShownTable& what) {
  const View& view = what.view;
  const std::vector<TableColumn>& columns = what.table.keys;
  const std::size_t keys = view.shown_keys(what.table);
  json_key(json, "by"), json.StartArray();
  for (std::size_t i = 0; i < keys; ++i) json_text(json, columns[i].label);
  json.EndArray();
  if (!view.value.empty()) json_key(json, "value"), json_text(json, view.value);
  const std::vector<ArrangedRow>& shown = what.rows;
  json_key(json, "rows"), json.StartArray();
  for (std::size_t n = 0; n < std::min(shown.size(), view.top); ++n) {
    const ArrangedRow& row = shown[n];
    json.StartObject();
    json_key(json, "key"), json.StartArray();
    for (std::size_t i = 0; i < keys; ++i) key(json, what.plan, columns[i], row.keys[i]);
    json.EndArray();
    truncated(json, row.keys);
    names(json, columns, row.keys);
    stack_end(json, row.keys);
    for (const RowNumber each : view.shown) {
      json_key(json, view.latency && each == RowNumber::sum ? "total" : member_of(each));
      const auto real = row.real(each);
      real ? json_real(json, *real) : number(json, decimal_text(row, each));
    }
    if (row.per_second) json_key(json, "per_second"), json_real(json, *row.per_second);
    if (row.distinct_at_least && view.shown.back() == RowNumber::distinct)
      json_key(json, "distinct_at_least"), json.Bool(true);
    if (view.has_buckets()) bars(json, row);
    json.EndObject();
  }
  json.EndArray();
  if (shown.size() > view.top) json_key(json, "more_rows"), json.Uint64(shown.size() - view.top);
}

}  // namespace usdt::exports
