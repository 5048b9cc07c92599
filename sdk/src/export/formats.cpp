// SPDX-License-Identifier: BSD-2-Clause
#include "export/formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace usdt {
namespace exports {
namespace {

constexpr std::array kRows{
    FormatRow{{"text", true, "a line for each event, columns for tables: for people"}, make_text_output},
    FormatRow{{"json", true, "one object a line (docs/json.md)"}, make_json_output, true},
    FormatRow{{"csv", true, "values with commas between them, below a line with their names"}, make_csv_output},
    FormatRow{{"record", false, "all of each event, compressed, which --replay shows in any way"}, make_record_output},
};

}  // namespace

std::span<const FormatRow> format_rows() noexcept { return kRows; }

Result<const FormatRow*> find_format(std::string_view name) {
  const auto found = std::ranges::find(kRows, name, [](const FormatRow& row) { return row.format.name; });
  if (found != kRows.end()) return &*found;
  std::vector<std::string_view> names;
  for (const FormatRow& row : kRows) names.push_back(row.format.name);
  return fail(ErrorKind::invalid_argument, fmt::format("\"{}\" is no format: {}", name, fmt::join(names, ", ")));
}

}  // namespace exports

inline namespace v1 {

std::span<const SinkFormat> sink_formats() noexcept {
  static constexpr auto kFormats = [] {
    std::array<SinkFormat, exports::kRows.size()> formats{};
    for (std::size_t i = 0; i < formats.size(); ++i) formats[i] = exports::kRows[i].format;
    return formats;
  }();
  return kFormats;
}

}  // namespace v1
}  // namespace usdt
