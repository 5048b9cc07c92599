// SPDX-License-Identifier: BSD-2-Clause
// Tables and histograms for people.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/escape.hpp"
#include "frames.hpp"
#include "view_output.hpp"

namespace usdt_trace {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kGap = "  ";

/// Each shown number of each row, with the header first, all of one column equally wide.
std::vector<Lines> number_columns(const View& view, const std::vector<ShownRow>& rows) {
  std::vector<Lines> columns;
  for (const Shown shown : view.shown) {
    Lines column{header_of(shown, view)};
    for (const ShownRow& row : rows) column.push_back(shown_number(shown, view, row));
    std::size_t width = 0;
    for (const std::string& cell : column) width = std::max(width, cell.size());
    for (std::string& cell : column) cell = fmt::format("{:>{}}", cell, width);
    columns.push_back(std::move(column));
  }
  return columns;
}

/// Each key of each row, with the header first; all but the last column are padded.
std::vector<Lines> key_columns(const ShownTable& what, const std::vector<ShownRow>& rows) {
  const std::vector<usdt::TableColumn>& keys = what.table.keys;
  const std::size_t shown = keys.size() - (what.view.folds_last_key() ? 1 : 0);
  std::vector<Lines> columns;
  for (std::size_t i = 0; i < shown; ++i) {
    if (keys[i].type == usdt::ExpressionType::stack) continue;  // below the row
    Lines column{keys[i].label};
    for (const ShownRow& row : rows)
      column.push_back(usdt::tools::printable(key_text(what.plan, keys[i], row.keys[i])));
    std::size_t width = 0;
    for (const std::string& cell : column) width = std::max(width, cell.size());
    for (std::string& cell : column) cell.resize(width, ' ');
    columns.push_back(std::move(column));
  }
  return columns;
}

/// Below a row, the kernel's first, as they were within each other.
void add_stacks(Lines& lines, const ShownRow& row) {
  for (const bool kernel : {true, false}) {
    for (const usdt::TableKey& key : row.keys) {
      const auto* stack = std::get_if<usdt::TableStack>(&key);
      if (stack == nullptr || stack->kernel != kernel) continue;
      if (!stack->names) lines.push_back(fmt::format("    <{}>", usdt::tools::printable(stack->why_none)));
      if (!stack->names) continue;
      for (const std::string& frame : frame_texts(*stack->names))
        lines.push_back("    " + usdt::tools::printable(frame));
    }
  }
}

std::string without_blanks_behind(std::string line) {
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

void add_rows(Lines& lines, const ShownTable& what, const std::vector<ShownRow>& rows) {
  auto columns = number_columns(what.view, rows);
  std::ranges::move(key_columns(what, rows), std::back_inserter(columns));
  for (std::size_t n = 0; n <= rows.size(); ++n) {
    std::string line;
    for (const Lines& column : columns) line.append(line.empty() ? "" : kGap).append(column[n]);
    lines.push_back(without_blanks_behind(std::move(line)));
    if (n > 0) add_stacks(lines, rows[n - 1]);
  }
}

/// "pid 17, comm bash", before a histogram of its own.
std::string title(const ShownTable& what, const ShownRow& row) {
  std::string text;
  for (std::size_t i = 0; i + 1 < what.table.keys.size(); ++i) {
    if (what.table.keys[i].type == usdt::ExpressionType::stack) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what.table.keys[i].label,
                        key_text(what.plan, what.table.keys[i], row.keys[i]));
  }
  const std::string_view unit = what.view.value == "duration" ? " (ns)" : "";
  return fmt::format("{}{}{}{}", text, text.empty() ? "" : ": ", what.view.value, unit);
}

void add_histogram(Lines& lines, const ShownTable& what, const ShownRow& row, std::size_t width) {
  std::size_t label = 0;
  std::size_t number = 0;
  std::uint64_t most = 1;
  for (const ShownRow::Bar& bar : row.bars) {
    label = std::max(label, range_text(what.view, bar.range).size());
    number = std::max(number, fmt::format("{}", bar.count).size());
    most = std::max(most, bar.count);
  }
  constexpr std::size_t kNarrowest = 10;
  const std::size_t taken = label + number + 2 * kGap.size();
  const std::size_t room = width > taken + kNarrowest ? width - taken : kNarrowest;
  lines.push_back(title(what, row));
  add_stacks(lines, row);
  const ShownRow::Bar* before = nullptr;
  for (const ShownRow::Bar& bar : row.bars) {
    if (before && !are_neighbours(*before, bar)) lines.push_back(fmt::format("{:>{}}", "...", label));
    before = &bar;
    const auto length = static_cast<std::size_t>(static_cast<usdt::Int128>(bar.count) * static_cast<int>(room) / most);
    lines.push_back(fmt::format("{:<{}}{}{:>{}}{}{:@<{}}", range_text(what.view, bar.range), label, kGap, bar.count,
                                number, length > 0 ? kGap : "", "", length));
  }
}

/// A key as one frame, or a stack as its own.
std::string folded_key(const ShownTable& what, std::size_t i, const ShownRow& row) {
  const auto* stack = std::get_if<usdt::TableStack>(&row.keys[i]);
  if (stack == nullptr) {
    std::string text = key_text(what.plan, what.table.keys[i], row.keys[i]);
    std::ranges::replace(text, ';', ':');
    return text;
  }
  return stack->names ? folded_text(*stack->names) : fmt::format("[{}]", stack->why_none);
}

/// "comm;main;serve 17", by the text: call sites within one function are one.
Lines folded_lines(const ShownTable& what) {
  std::map<std::string, usdt::TableRow> folded;
  const bool sums = what.table.real_sums;
  for (const ShownRow& row : arrange(what.view, what.table, what.rows)) {
    std::string text;
    for (std::size_t i = 0; i < row.keys.size(); ++i)
      text.append(i > 0 ? ";" : "").append(usdt::tools::printable(folded_key(what, i, row)));
    usdt::TableRow& same = folded[text];
    same.real_sum.add(row.real_sum);
    if (!sums) same.sum += weight_of(what.view, row);
  }
  Lines lines;
  for (const auto& [text, row] : folded)
    lines.push_back(fmt::format("{} {}", text, sums ? fmt::format("{}", row.real_sum.value()) : decimal(row.sum)));
  return lines;
}

}  // namespace

std::string percent_text(double share) {
  const double percent = share * 100;
  return fmt::format("{:.{}f} %", percent, percent >= 10 ? 0 : percent >= 1 ? 1 : 2);
}

std::string estimated_text(const usdt::Overhead& overhead) {
  return fmt::format("estimated from {} of {}", percent_text(overhead.looked_at),
                     overhead.of_processors ? "what the processes did" : "the time");
}

std::string estimated_text(std::uint32_t sample) { return fmt::format("estimated from one in {} hits", sample); }

std::vector<std::string> table_lines(const ShownTable& what, std::size_t width) {
  const View& view = what.view;
  if (view.folded) return folded_lines(what);
  std::vector<ShownRow> shown = arrange(view, what.table, what.rows);
  const std::size_t left_out = shown.size() - std::min(shown.size(), view.top);
  shown.resize(shown.size() - left_out);
  Lines lines;
  if (view.histogram == Histogram::none) {
    add_rows(lines, what, shown);
  } else {
    for (const ShownRow& row : shown) {
      if (!lines.empty()) lines.emplace_back();
      add_histogram(lines, what, row, width);
    }
  }
  if (left_out > 0) lines.push_back(fmt::format("and {} more", left_out));
  return lines;
}

}  // namespace usdt_trace
