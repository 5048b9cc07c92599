// SPDX-License-Identifier: BSD-2-Clause
// The table of sinks: a new one is a row of it and a file that makes its Output.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "export/output.hpp"
#include "http/poster.hpp"
#include "usdt/sink.hpp"

namespace usdt::exports {

/// One form.
struct FormatRow {
  SinkFormat format;
  /// Makes what writes it, once answers begin.
  std::unique_ptr<Output> (*make)(const AnswerStart& start, const OutputPlace& place);
  /// Says what of a question it cannot write.
  Result<void> (*check)(const Question& question) = nullptr;
  /// Reads the place, of forms that are sent.
  Result<http::Endpoint> (*find_endpoint)(const std::string& place) = nullptr;
  bool records = false;           ///< it needs records of a live trace
  bool is_of_metrics = false;     ///< it has a page of metrics (Destination::metric_page), which may be served
  bool tells_of_nothing = false;  ///< who reads it gets the account of a session that had nothing to trace, too
};

/// In the order of sink_formats().
[[nodiscard]] std::span<const FormatRow> format_rows() noexcept;
/// Returns the row with this name. Errors: invalid_argument, with the names there are.
[[nodiscard]] Result<const FormatRow*> find_format(std::string_view name);

/// Returns the server of a form that is sent. Errors: invalid_argument, with what is wrong about the place.
[[nodiscard]] Result<http::Endpoint> find_endpoint(const FormatRow& row, const std::string& place);

[[nodiscard]] std::unique_ptr<Output> make_text_output(const AnswerStart& start, const OutputPlace& place);
[[nodiscard]] std::unique_ptr<Output> make_json_output(const AnswerStart& start, const OutputPlace& place);
[[nodiscard]] std::unique_ptr<Output> make_csv_output(const AnswerStart& start, const OutputPlace& place);
[[nodiscard]] std::unique_ptr<Output> make_folded_output(const AnswerStart& start, const OutputPlace& place);
[[nodiscard]] std::unique_ptr<Output> make_flame_output(const AnswerStart& start, const OutputPlace& place);
[[nodiscard]] std::unique_ptr<Output> make_perfetto_output(const AnswerStart& start, const OutputPlace& place);
[[nodiscard]] std::unique_ptr<Output> make_otlp_output(const AnswerStart& start, const OutputPlace& place);
[[nodiscard]] std::unique_ptr<Output> make_clickhouse_output(const AnswerStart& start, const OutputPlace& place);
[[nodiscard]] std::unique_ptr<Output> make_report_output(const AnswerStart& start, const OutputPlace& place);
[[nodiscard]] std::unique_ptr<Output> make_pprof_output(const AnswerStart& start, const OutputPlace& place);
[[nodiscard]] std::unique_ptr<Output> make_prometheus_output(const AnswerStart& start, const OutputPlace& place);
/// Records all of a trace, or its last part (AskedRecording::last).
[[nodiscard]] std::unique_ptr<Output> make_record_output(const AnswerStart& start, const OutputPlace& place);

}  // namespace usdt::exports
