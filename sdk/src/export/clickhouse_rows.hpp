// SPDX-License-Identifier: BSD-2-Clause
// Rows for ClickHouse, each a line of JSON (its format JSONEachRow), with the columns of
// examples/fleet/clickhouse/tables.sql.
#pragma once

#include <rapidjson/stringbuffer.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "export/json_values.hpp"
#include "export/metrics.hpp"
#include "io/json.hpp"
#include "usdt/plan.hpp"
#include "usdt/stack.hpp"
#include "usdt/view.hpp"

namespace usdt::exports::clickhouse {

/// Appends a text as a string of JSON; what a terminal would obey is an escape in the text itself ("\x1b").
void append_string(std::string& out, std::string_view text);
/// Appends an integer.
void append_number(std::string& out, std::int64_t number);
void append_number(std::string& out, std::uint64_t number);

/// The columns of one row, with a comma before each but the first.
class RowWriter {
 public:
  /// Writes at the end of `out`, which lives as long.
  explicit RowWriter(std::string& out) : out_(out) {}

  void begin() { out_ += '{'; }
  /// `constants`: columns that are written already, `,"host":"a"`.
  void end(std::string_view constants) { out_.append(constants).append("}\n"); }

  /// Columns' names need no escapes.
  void column(std::string_view name) {
    if (out_.back() != '{') out_ += ',';
    out_.append("\"").append(name).append("\":");
  }
  void text(std::string_view name, std::string_view value) { column(name), append_string(out_, value); }
  template <class Number>
  void number(std::string_view name, Number value) {
    column(name);
    if constexpr (std::is_signed_v<Number>)
      append_number(out_, static_cast<std::int64_t>(value));
    else
      append_number(out_, static_cast<std::uint64_t>(value));
  }
  /// A number beyond all, or none at all, is "inf", "nan".
  void real(std::string_view name, double value);
  /// Adds a value that is JSON already.
  void written(std::string_view name, std::string_view json) { column(name), out_ += json; }
  void frames(std::string_view name, const Stack& stack);

 private:
  std::string& out_;
};

/// The values of an event as two maps (value_tree.hpp: TreeWriter): integers of 64 bits with a sign, by which queries
/// are cheap, and all else as text. Values within each other are JSON there.
class ValueMaps {
 public:
  /// Begins a value.
  void begin(std::string_view name) { name_ = name; }

  void begin_object() { ++depth_, json_.begin_object(); }
  void member(std::string_view name) { json_.member(name); }
  void end_object() { json_.end_object(), end_level(); }
  void begin_list() { ++depth_, json_.begin_list(); }
  void end_list() { json_.end_list(), end_level(); }
  void whole(std::int64_t number);
  /// Numbers beyond what the map of integers has are text.
  void natural(std::uint64_t number);
  void real(double number);
  void text(std::string_view text);
  void cut_text(std::string_view text);
  /// A value that could not be read is no value: "NAME.error" says why.
  void error(std::string_view reason);
  void frames(const Stack& stack);

  /// Writes the columns `args` and `nums`, and has no values any more.
  void take(RowWriter& row);

 private:
  void end_level();
  /// Begins a pair of a map.
  static void begin_pair(std::string& map, std::string_view name);

  std::string name_;
  std::string args_ = "{", nums_ = "{";
  unsigned depth_ = 0;  ///< of lists and objects that have not ended
  rapidjson::StringBuffer nested_;
  io::JsonWriter writer_{nested_};
  JsonValues json_{writer_};
};

/// Writes a row of a table: its keys, count, sum and extremes, and its histogram.
void write_table_row(RowWriter& row, const AttachPlan& plan, const View& view, const PlannedTable& table,
                     const ArrangedRow& arranged);

}  // namespace usdt::exports::clickhouse
