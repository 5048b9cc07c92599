// SPDX-License-Identifier: BSD-2-Clause
#include "export/formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/try.hpp"
#include "export/clickhouse_place.hpp"
#include "export/otlp_place.hpp"
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
  if (!question.values.print.for_probes.empty())
    return session::refuse(fmt::format("--format csv has the same columns for all probes, and {} has a list of its own "
                                       "(--print)",
                                       question.values.print.for_probes.front().probe),
                           question.option_prefix);
  return check_rules(question,
                     std::array{Rule{question.view.folded || !question.values.format.empty(),
                                     "--format csv has columns: --folded and --format-string are lines of their own"}});
}

/// A view by a stack has one, and its number is a count or a sum. Events of a recording have the stacks that it has.
Result<void> check_stacks(const Question& question) {
  const View& view = question.view;
  const bool of_rows = view.no_events();
  const bool may_have_stacks = question.stacks.kernel_depth > 0 || question.stacks.user_depth > 0;
  const bool has_stack = of_rows ? view.has_stacks() : may_have_stacks || !question.recording.replay.empty();
  const bool adds_up =
      !of_rows || view.shown.size() == 1 || (view.shown.size() == 2 && view.shown[1] == RowNumber::sum);
  return check_rules(
      question,
      std::array{
          Rule{
              !has_stack,
              "folded, flame and pprof are of stacks: --by ustack or --by kstack, or events with --ustack or --kstack"},
          Rule{view.slowest > 0, "folded, flame and pprof count hits: they go with neither --slowest nor --in-flight"},
          Rule{!adds_up || view.has_buckets(),
               "folded, flame and pprof have a count, or with --sum a sum, for each stack: they go with neither --avg, "
               "--min, "
               "--max, --distinct, --hist, --lhist nor --latency"},
      });
}

Result<void> check_perfetto(const Question& question) {
  return check_rules(question, std::array{Rule{question.view.no_events(),
                                               "a time line has events: counts, tables and heat maps have none"}});
}

Result<void> check_metrics(const Question& question) {
  return check_rules(
      question,
      std::array{
          Rule{question.view.has_stacks(),
               "metrics have labels, which stacks are too long for: --export flame has them"},
          Rule{question.view.slowest > 0, "metrics are numbers: --slowest and --in-flight show events"},
          Rule{question.view.in_flight, "metrics have the hits of the whole trace, and not what is in flight"},
          Rule{question.view.heat_map, "metrics have a time of their own: --hist or --latency in place of --heatmap"},
      });
}

/// Events are spans and log records there, whatever comes with them.
Result<void> check_metrics_of_rows(const Question& question) {
  return question.view.no_events() ? check_metrics(question) : Result<void>();
}

constexpr std::array kRows{
    FormatRow{.format = {"text", true, "lines and columns for people"}, .make = make_text_output},
    FormatRow{.format = {"json", true, "one object a line"},
              .make = make_json_output,
              .check = check_json,
              .tells_of_nothing = true},
    FormatRow{.format = {.name = "csv",
                         .has_lines = true,
                         .description = "values with commas between them",
                         .of_one_question = true},
              .make = make_csv_output,
              .check = check_csv},
    FormatRow{.format = {.name = "folded",
                         .has_lines = true,
                         .description = "a line for each stack, for flame graphs",
                         .of_one_question = true},
              .make = make_folded_output,
              .check = check_stacks},
    FormatRow{.format = {.name = "flame",
                         .has_lines = false,
                         .description = "a flame graph, as a page for a browser",
                         .of_one_question = true},
              .make = make_flame_output,
              .check = check_stacks},
    FormatRow{.format = {.name = "report",
                         .has_lines = false,
                         .description = "all of a trace as pictures and tables, as a page for a browser",
                         .of_one_question = true},
              .make = make_report_output},
    FormatRow{.format = {.name = "pprof",
                         .has_lines = false,
                         .description = "stacks with lines and addresses, for pprof",
                         .of_one_question = true},
              .make = make_pprof_output,
              .check = check_stacks},
    FormatRow{.format = {"perfetto", false, "calls, spans and hits on a time line, for ui.perfetto.dev"},
              .make = make_perfetto_output,
              .check = check_perfetto},
    FormatRow{.format = {"prometheus", true, "metrics, as text that Prometheus reads"},
              .make = make_prometheus_output,
              .check = check_metrics,
              .is_of_metrics = true},
    FormatRow{.format = {"otlp", false, "spans, log records and metrics, sent to a collector of OpenTelemetry", true},
              .make = make_otlp_output,
              .check = check_metrics_of_rows,
              .find_endpoint = otlp::find_endpoint},
    FormatRow{
        .format = {"clickhouse", false, "rows of events, tables and the ledger, sent to a ClickHouse server", true},
        .make = make_clickhouse_output,
        .check = check_metrics_of_rows,
        .find_endpoint = clickhouse::find_endpoint},
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

Result<http::Endpoint> find_endpoint(const FormatRow& row, const std::string& place) {
  if (place.empty())
    return fail(ErrorKind::invalid_argument,
                fmt::format("it is sent by HTTP, and needs a place: {}=http://HOST:PORT", row.format.name));
  return row.find_endpoint(place);
}

}  // namespace exports

inline namespace v1 {

Result<void> check_sink_format(std::string_view format, const Question& question) {
  const auto row = TRY(exports::find_format(format));
  return row->check == nullptr ? Result<void>() : row->check(question);
}

Result<void> check_sink_place(std::string_view format, const std::string& place) {
  const auto row = TRY(exports::find_format(format));
  if (row->format.is_sent) TRY(exports::find_endpoint(*row, place));
  return {};
}

Result<void> check_listen_place(std::string_view place) { return http::check_address(place); }

std::string shown_place(std::string_view place) { return http::without_user(place); }

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
