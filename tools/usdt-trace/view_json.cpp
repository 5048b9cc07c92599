// SPDX-License-Identifier: BSD-2-Clause
// Tables and histograms as JSON (docs/json.md).
#include <fmt/format.h>

#include <algorithm>

#include "frames.hpp"
#include "view_output.hpp"
#include "view_words.hpp"

namespace usdt_trace {
namespace {

using usdt::tools::json_key;
using usdt::tools::json_real;
using usdt::tools::json_text;
using usdt::tools::JsonWriter;

void number(JsonWriter& json, const std::string& digits) {
  json.RawValue(digits.data(), digits.size(), rapidjson::kNumberType);
}

std::string_view member_of(usdt::RowNumber shown) {
  switch (shown) {
    case usdt::RowNumber::count:
      return "count";
    case usdt::RowNumber::sum:
      return "sum";
    case usdt::RowNumber::average:
      return "avg";
    case usdt::RowNumber::minimum:
      return "min";
    case usdt::RowNumber::maximum:
      return "max";
    case usdt::RowNumber::distinct:
      return "distinct";
    case usdt::RowNumber::p50:
      return "p50";
    case usdt::RowNumber::p90:
      return "p90";
    case usdt::RowNumber::p99:
      return "p99";
    case usdt::RowNumber::p999:
      return "p99.9";
  }
  return {};
}

/// The frames, or why there are none.
void stack(JsonWriter& json, const usdt::TableStack& stack) {
  if (stack.names) return write_frames(json, *stack.names);
  json.StartObject();
  json_key(json, "error"), json_text(json, stack.why_none);
  json.EndObject();
}

/// Where the stack of a process ends that does not end with its outermost function.
void stack_end(JsonWriter& json, const std::vector<usdt::TableKey>& keys) {
  for (const usdt::TableKey& each : keys) {
    const auto* stack = std::get_if<usdt::TableStack>(&each);
    if (stack == nullptr || stack->kernel || !stack->names || stack->names->end == usdt::FrameIssue::none) continue;
    json_key(json, "ustack_end"), json_text(json, to_string(stack->names->end));
  }
}

/// A number as a number, whatever it is called; a text, and the name of a probe, as a string.
void key(JsonWriter& json, const usdt::AttachPlan& plan, const usdt::TableColumn& column, const usdt::TableKey& key) {
  if (const auto* text = std::get_if<usdt::TableText>(&key)) return json_text(json, text->bytes);
  if (const auto* frames = std::get_if<usdt::TableStack>(&key)) return stack(json, *frames);
  if (const auto* real = std::get_if<usdt::TableReal>(&key)) return json_real(json, real->value);
  if (column.field == usdt::HitField::probe || column.form == usdt::KeyForm::ipv4)
    return json_text(json, key_text(plan, column, key));
  if (const auto* wide = std::get_if<std::uint64_t>(&key)) {
    json.Uint64(*wide);
  } else {
    json.Int64(std::get<std::int64_t>(key));
  }
}

/// Which of the keys are texts that were cut.
void truncated(JsonWriter& json, const std::vector<usdt::TableKey>& keys) {
  bool any = false;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto* text = std::get_if<usdt::TableText>(&keys[i]);
    if (text == nullptr || !text->truncated) continue;
    if (!any) json_key(json, "truncated"), json.StartArray();
    any = true;
    json.Uint64(i);
  }
  if (any) json.EndArray();
}

void bounds(JsonWriter& json, const usdt::BucketRange& range) {
  if (const auto* reals = std::get_if<usdt::RealBucket>(&range)) {
    json_key(json, "low"), json_real(json, reals->first);
    json_key(json, "high"), json_real(json, reals->end);
    return;
  }
  const auto& bucket = std::get<usdt::Bucket>(range);
  json_key(json, "first"), number(json, usdt::decimal_text(bucket.first));
  json_key(json, "last"), number(json, usdt::decimal_text(bucket.last));
}

void bars(JsonWriter& json, const usdt::ArrangedRow& row) {
  json_key(json, "buckets"), json.StartArray();
  for (const usdt::ArrangedRow::Bar& bar : row.bars) {
    json.StartObject();
    bounds(json, bar.range);
    json_key(json, "count"), json.Uint64(bar.count);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

void write_slice(JsonWriter& json, const usdt::View& view, const usdt::HeatSlice& slice) {
  usdt::ArrangedRow row;
  for (const auto& [key, count] : slice.counts) {
    row.bars.push_back({key, usdt::range_of(view, slice.reals, key, key), count});
    row.count += count;
  }
  json_key(json, "count"), json.Uint64(row.count);
  bars(json, row);
}

void write_table(JsonWriter& json, const ShownTable& what) {
  const usdt::View& view = what.view;
  const std::vector<usdt::TableColumn>& columns = what.table.keys;
  const std::size_t keys = view.shown_keys(what.table);
  json_key(json, "by"), json.StartArray();
  for (std::size_t i = 0; i < keys; ++i) json_text(json, columns[i].label);
  json.EndArray();
  if (!view.value.empty()) json_key(json, "value"), json_text(json, view.value);
  const std::vector<usdt::ArrangedRow>& shown = what.rows;
  json_key(json, "rows"), json.StartArray();
  for (std::size_t n = 0; n < std::min(shown.size(), view.top); ++n) {
    const usdt::ArrangedRow& row = shown[n];
    json.StartObject();
    json_key(json, "key"), json.StartArray();
    for (std::size_t i = 0; i < keys; ++i) key(json, what.plan, columns[i], row.keys[i]);
    json.EndArray();
    truncated(json, row.keys);
    stack_end(json, row.keys);
    for (const usdt::RowNumber each : view.shown) {
      json_key(json, view.latency && each == usdt::RowNumber::sum ? "total" : member_of(each));
      const auto real = row.real(each);
      real ? json_real(json, *real) : number(json, usdt::decimal_text(row, each));
    }
    if (row.per_second) json_key(json, "per_second"), json_real(json, *row.per_second);
    if (row.distinct_at_least && view.shown.back() == usdt::RowNumber::distinct)
      json_key(json, "distinct_at_least"), json.Bool(true);
    if (view.has_buckets()) bars(json, row);
    json.EndObject();
  }
  json.EndArray();
  if (shown.size() > view.top) json_key(json, "more_rows"), json.Uint64(shown.size() - view.top);
}

}  // namespace usdt_trace
