// SPDX-License-Identifier: BSD-2-Clause
// Rows for ClickHouse, in RowBinary, with the columns of examples/fleet/clickhouse/tables.sql.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "export/clickhouse_binary.hpp"
#include "export/json_values.hpp"
#include "export/metrics.hpp"
#include "io/json.hpp"
#include "usdt/plan.hpp"
#include "usdt/stack.hpp"
#include "usdt/view.hpp"

namespace usdt::exports::clickhouse {

/// The values of an event as two maps (value_tree.hpp: TreeWriter): integers of 64 bits with a sign, by which queries
/// are cheap, and all else as text. Values within each other are JSON there.
class ValueMaps {
 public:
  /// Begins a value.
  void begin(std::string_view name);

  void begin_object() { ++depth_, json_.begin_object(); }
  void member(std::string_view name);
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

  [[nodiscard]] const Map<std::int64_t>& nums() const noexcept { return nums_; }
  [[nodiscard]] const Map<FreeText>& args() const noexcept { return args_; }
  /// There are no values any more.
  void clear() { nums_.clear(), args_.clear(); }

 private:
  void end_level();

  std::string name_;  ///< io::valid_utf8()
  Map<std::int64_t> nums_;
  Map<FreeText> args_;
  unsigned depth_ = 0;  ///< of lists and objects that have not ended
  rapidjson::StringBuffer nested_;
  io::JsonWriter writer_{nested_};
  JsonValues json_{writer_};
};

/// Adds the frames, each a text.
void add_frames(Array<Label>& texts, const Stack& stack);

/// Columns of usdt_events.
struct EventRow {
  Time time = {};
  std::uint64_t duration = 0;
  Kind kind = Kind::hit;
  Label probe = {};
  Label service = {};
  Label container = {};
  std::uint32_t pid = 0, tid = 0;
  std::uint16_t cpu = 0;
  Label comm = {};
  float weight = 1;
  ValueMaps* values = nullptr;
  Array<Label> ustack = {}, kstack = {};
};

/// Columns of usdt_tables.
struct TableRow {
  Map<FreeText> keys = {};
  std::uint64_t count = 0;
  std::optional<double> sum = {}, min = {}, max = {};
  std::optional<std::uint64_t> distinct = {};
  Label unit = {};
  std::uint8_t scale = 0;
  std::uint64_t zeros = 0;
  Array<std::int32_t> positive_index = {}, negative_index = {};
  Array<std::uint64_t> positive_count = {}, negative_count = {};
  Array<double> bounds = {};
  Array<std::uint64_t> bound_counts = {};
};

/// Columns of usdt_ledger.
struct LedgerRow {
  Label probe = {}, role = {}, name = {};
  std::uint64_t value = 0;
};

/// Columns of usdt_tables and usdt_ledger: when numbers were so, and where.
struct Look {
  Time time = {};
  bool last = false;  ///< there will be no others
  Label service = {}, container = {};
};

/// Columns of all tables: whose rows they are, and of which batch.
struct Source {
  Label version = {}, host = {}, question = {}, boot = {};
  std::uint64_t trace = 0, seq = 0;
};

/// The columns of what makes a row: each visit gets a name and a value.
template <class Visit>
void each_column(const EventRow& row, const Visit& visit) {
  visit("time", row.time);
  visit("duration", row.duration);
  visit("kind", row.kind);
  visit("probe", row.probe);
  visit("service", row.service);
  visit("container", row.container);
  visit("pid", row.pid);
  visit("tid", row.tid);
  visit("cpu", row.cpu);
  visit("comm", row.comm);
  visit("weight", row.weight);
  visit("nums", row.values->nums());
  visit("args", row.values->args());
  visit("ustack", row.ustack);
  visit("kstack", row.kstack);
}
template <class Visit>
void each_column(const TableRow& row, const Visit& visit) {
  visit("keys", row.keys);
  visit("count", row.count);
  visit("sum", row.sum);
  visit("min", row.min);
  visit("max", row.max);
  visit("distinct", row.distinct);
  visit("unit", row.unit);
  visit("scale", row.scale);
  visit("zeros", row.zeros);
  visit("positive_index", row.positive_index);
  visit("positive_count", row.positive_count);
  visit("negative_index", row.negative_index);
  visit("negative_count", row.negative_count);
  visit("bounds", row.bounds);
  visit("bound_counts", row.bound_counts);
}
template <class Visit>
void each_column(const LedgerRow& row, const Visit& visit) {
  visit("probe", row.probe);
  visit("role", row.role);
  visit("name", row.name);
  visit("value", row.value);
}
template <class Visit>
void each_column(const Look& look, const Visit& visit) {
  visit("time", look.time);
  visit("last", look.last);
  visit("service", look.service);
  visit("container", look.container);
}
template <class Visit>
void each_column(const Source& source, const Visit& visit) {
  visit("version", source.version);
  visit("host", source.host);
  visit("question", source.question);
  visit("boot", source.boot);
  visit("trace", source.trace);
  visit("seq", source.seq);
}

/// Appends the values of the columns.
template <class Part>
void append_values(std::string& out, const Part& part) {
  each_column(part, [&out](std::string_view /*name*/, const auto& value) { append(out, value); });
}

/// Returns what rows of these parts, one behind the other, begin with in RowBinaryWithNamesAndTypes: how many columns
/// there are, their names, and their types.
template <class... Parts>
[[nodiscard]] std::string header_of(const Parts&... parts) {
  std::size_t columns = 0;
  std::string names, types;
  const auto add = [&](std::string_view name, const auto& value) {
    constexpr std::string_view type = kTypeName<std::remove_cvref_t<decltype(value)>>;
    static_assert(!type.empty());
    ++columns, append(names, name), append(types, type);
  };
  (each_column(parts, add), ...);
  std::string header;
  append_length(header, columns);
  return header + names + types;
}

/// Returns the row of a row of a table: its keys, count, sum and extremes, and its histogram.
[[nodiscard]] TableRow table_row(const AttachPlan& plan, const View& view, const PlannedTable& table,
                                 const ArrangedRow& arranged);

}  // namespace usdt::exports::clickhouse
