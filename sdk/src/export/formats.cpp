// SPDX-License-Identifier: BSD-2-Clause
#include "export/formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/try.hpp"
#include "session/rules.hpp"

namespace usdt {
namespace exports {
namespace {

using session::check_rules;
using session::Rule;

Result<void> check_json(const Question& question) {
  return check_rules(question, std::array{Rule{question.view.folded, "--folded is text: JSON has the stacks anyway"}});
}

Result<void> check_csv(const Question& question) {
  return check_rules(
      question,
      std::array{
          Rule{question.view.folded || !question.values.format.empty(),
               "--format csv has columns: --folded and --format-string are lines of their own"},
          Rule{!question.values.print.for_probes.empty(),
               "--format csv has the same columns for all probes: one --print LIST"},
          Rule{!question.name.empty(), "--format csv is of one question: those of a script have different columns"},
      });
}

Result<void> check_perfetto(const Question& question) {
  return check_rules(question, std::array{Rule{question.view.no_events(),
                                               "a time line has events: counts, tables and heat maps have none"}});
}

constexpr std::array kRows{
    FormatRow{.format = {"text", true, "lines and columns for people"}, .make = make_text_output},
    FormatRow{.format = {"json", true, "one object a line"},
              .make = make_json_output,
              .check = check_json,
              .tells_of_nothing = true},
    FormatRow{.format = {"csv", true, "values with commas between them"}, .make = make_csv_output, .check = check_csv},
    FormatRow{.format = {"perfetto", false, "calls, spans and hits on a time line, for ui.perfetto.dev"},
              .make = make_perfetto_output,
              .check = check_perfetto},
    FormatRow{.format = {"record", false, "all of each event, compressed, which --replay shows in any way"},
              .make = make_record_output,
              .records = true},
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

Result<void> check_sink_format(std::string_view format, const Question& question) {
  const auto row = TRY(exports::find_format(format));
  return row->check == nullptr ? Result<void>() : row->check(question);
}

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
