// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

/// What people are told of numbers that are estimates.
[[nodiscard]] std::string estimated_text(std::uint32_t sample);
[[nodiscard]] std::string estimated_text(const usdt::Overhead& overhead);
/// "about 4000 hits in all"; "3000 to 6000 hits in all", where what a hit costs makes much of the estimate.
[[nodiscard]] std::string estimated_text(std::uint64_t hits, const usdt::Overhead& overhead);
/// "4.9 %", of 0.049.
[[nodiscard]] std::string percent_text(double share);

/// Rows, and what they are.
struct ShownTable {
  const usdt::View& view;
  const usdt::AttachPlan& plan;
  const usdt::PlannedTable& table;
  const std::vector<usdt::ArrangedRow>& rows;
};

/// What tables are shown on.
struct Page {
  std::size_t columns = 80;                   ///< for histograms with their bars
  std::size_t room = std::string_view::npos;  ///< columns that lines may have
  bool redrawn = false;                       ///< the next table takes its place: all lines have to fit, stacks, too
};

/// The table as columns, or as histograms; whatever is text of others is printable. Words that there is no room for are
/// shortened(), numbers never: a line is longer than the page only for one.
[[nodiscard]] std::vector<std::string> table_lines(const ShownTable& shown, const Page& page);

/// Its members of a JSON object: "by", "rows" (docs/json.md).
void write_table(usdt::tools::JsonWriter& json, const ShownTable& shown);
/// The same of a stretch of time: "count", "buckets".
void write_slice(usdt::tools::JsonWriter& json, const usdt::View& view, const usdt::HeatSlice& slice);

}  // namespace usdt_trace
