// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "export/frames.hpp"
#include "export/trends.hpp"
#include "io/json.hpp"
#include "usdt/plan.hpp"
#include "usdt/view.hpp"

namespace usdt::exports {

/// Rows, and what they are.
struct ShownTable {
  const View& view;
  const AttachPlan& plan;
  const PlannedTable& table;
  const std::vector<ArrangedRow>& rows;
};

/// The area that tables are shown in.
struct Page {
  std::size_t columns = 80;                   ///< for histograms with their bars
  std::size_t room = std::string_view::npos;  ///< columns that lines may have
  bool live = false;               ///< the trace goes on: rates are those since the table before, counts are not
  bool redrawn = false;            ///< the next table takes its place: all lines have to fit, stacks, too
  bool blocks = false;             ///< block characters may be used for pictures
  const Trends* trends = nullptr;  ///< of the rows, for who looks again and again; null: none are shown
};

/// The table as columns, or as histograms; whatever is text of others is printable. Words that there is no room for are
/// shortened(), numbers never: a line is longer than the page only for one.
[[nodiscard]] std::vector<std::string> table_lines(const ShownTable& shown, const Page& page);

/// The rows with their keys folded ("comm;main;serve"), and in TableRow::sum or real_sum their count or sum: call sites
/// within one function are one.
[[nodiscard]] std::map<std::string, TableRow> folded_rows(const ShownTable& shown, FoldedMarks marks);

/// Its members of a JSON object: "by", "rows" (docs/json.md).
void write_table(io::JsonWriter& json, const ShownTable& shown);
/// The same of a stretch of time: "count", "buckets".
void write_slice(io::JsonWriter& json, const View& view, const HeatSlice& slice);

}  // namespace usdt::exports
