// SPDX-License-Identifier: BSD-2-Clause
// Lines about all hits together: tables, pictures, counts. On a terminal the ones before give their place to them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/clock_text.hpp"
#include "export/heat_picture.hpp"
#include "export/output.hpp"
#include "export/trends.hpp"

namespace usdt::exports {

/// Returns how often a probe was hit, by --count; estimated where not all hits were looked at.
[[nodiscard]] std::uint64_t number_of_hits(const AskedLimits& limits, const Account& probe);

/// Prints tables, pictures and counts.
class TextTables {
 public:
  /// All live as long. `label`: what stands before the lines of the question.
  TextTables(const Question& question, io::Stream& out, std::string label)
      : out_(out), limits_(question.limits), view_(question.view), name_(question.name), label_(std::move(label)) {}

  void show_table(const AttachPlan& plan, const ArrangedTable& look);
  /// On a terminal a picture of as much as it is wide for, again and again; elsewhere one of all in the end.
  void show_heat(const HeatSlice& slice, bool last);
  /// Probes that were hit, most hits first.
  void show_counts(const AttachPlan& plan, const SessionSummary& summary);
  /// Begins a list of lines that others print; returns where, for end_list().
  [[nodiscard]] std::uint64_t begin_list();
  void end_list(std::uint64_t begin, bool last);

 private:
  /// Says whose table follows, and as of when, where there are several.
  void show_when();
  /// On a terminal in one line.
  void show_count(std::uint64_t hits, const std::string& probe);
  /// Ends a line that may take the place of another one.
  void end_line();
  /// Lines of the terminal that it goes over.
  [[nodiscard]] std::size_t height_of(std::string_view line) const;
  /// Leaves lines of a table out, above as many other lines.
  void leave_out_what_is_too_high(std::vector<std::string>& lines, std::size_t others) const;

  /// One column less than the terminal has: some begin a new line behind the last one.
  [[nodiscard]] std::size_t room_of_lines() const { return std::max<std::size_t>(out_.terminal().width, 2) - 1; }
  /// The most lines of a table that takes its own place again and again.
  [[nodiscard]] std::size_t most_lines() const { return std::max<std::size_t>(out_.terminal().height, 4) - 2; }
  /// A table takes the place of the one before. Those of a script would take each other's.
  [[nodiscard]] bool redraws() const {
    return out_.terminal().interactive && view_.interval.has_value() && name_.empty();
  }
  [[nodiscard]] bool is_estimated() const { return limits_.max_overhead > 0; }

  io::Stream& out_;
  const AskedLimits& limits_;
  const View& view_;
  const std::string& name_;  ///< of the question; empty: of no script
  std::string label_;
  std::size_t height_ = 0;  ///< lines of the last table, on a terminal
  Trends trends_;
  HeatMap heat_map_;
  ClockText clock_;
};

}  // namespace usdt::exports
