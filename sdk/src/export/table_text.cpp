// SPDX-License-Identifier: BSD-2-Clause
// Tables and histograms for people.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "base/counted.hpp"
#include "export/frames.hpp"
#include "export/table_output.hpp"
#include "export/table_words.hpp"
#include "io/escape.hpp"
#include "io/width.hpp"

namespace usdt::exports {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kGap = "  ";

/// Cells below each other.
struct Column {
  bool right = false;  ///< aligned
  Lines cells{};
  std::size_t width = 0;  ///< of the widest cell, until there is no room for it
  std::size_t least = 0;  ///< that it can be made narrower to

  void add(std::string text, bool may_be_cut) {
    constexpr std::size_t kNarrowest = 16;  // the name of any command fits it
    const std::size_t columns = io::width_of(text);
    width = std::max(width, columns);
    least = std::max(least, may_be_cut ? std::min(columns, kNarrowest) : columns);
    cells.push_back(std::move(text));
  }
  void add_words(std::string_view text) { add(io::printable(text), true); }
  void add_number(std::string text) { add(std::move(text), false); }

  [[nodiscard]] std::string cell(std::size_t n) const {
    std::string text = io::shortened(cells[n], width);
    if (right) text.insert(0, width - io::width_of(text), ' ');
    return io::padded(std::move(text), width);
  }
};

std::string without_blanks_behind(std::string line) {
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

/// Columns beside each other. Where there is no room for them words are cut, numbers never. If that is not enough,
/// what has no room beside those before it is below them, and is cut no more than a line of its own demands.
class Grid {
 public:
  Grid(std::vector<Column> columns, std::size_t room, std::string_view gap = kGap)
      : columns_(std::move(columns)), room_(room), gap_(gap) {
    make_fit();
  }

  void add_row(Lines& lines, std::size_t n) const {
    std::string line;
    std::size_t taken = 0;
    for (const Column& column : columns_) {
      if (taken > 0 && taken + gap_.size() + column.width > room_) {
        lines.push_back(without_blanks_behind(std::exchange(line, std::string(kBelow, ' '))));
        taken = kBelow;
      } else if (taken > 0) {
        line += gap_;
        taken += gap_.size();
      }
      line += column.cell(n);
      taken += column.width;
    }
    line = without_blanks_behind(std::move(line));
    if (!line.empty()) lines.push_back(std::move(line));
  }

 private:
  static constexpr std::size_t kBelow = 4;  ///< how far lines begin to the right that continue another

  void make_fit() {
    const std::vector<Column> whole = columns_;
    if (fits_when_cut()) return;
    columns_ = whole;
    const std::size_t line = room_ - std::min(room_, kBelow);
    for (Column& column : columns_) column.width = std::min(column.width, std::max(column.least, line));
  }

  /// Makes the widest narrower, as far as it can be.
  bool fits_when_cut() {
    std::size_t taken = gap_.size() * (columns_.size() - 1);
    for (const Column& column : columns_) taken += column.width;
    const auto can_give = [](const Column& column) { return column.width > column.least ? column.width : 0; };
    for (; taken > room_; --taken) {
      Column& widest = *std::ranges::max_element(columns_, {}, can_give);
      if (can_give(widest) == 0) return false;
      --widest.width;
    }
    return true;
  }

  std::vector<Column> columns_;
  std::size_t room_;
  std::string_view gap_;
};

/// Whether a key is digits, which mean something else where one is missing.
bool is_number(const TableKey& key, std::string_view text) {
  if (std::holds_alternative<TableText>(key) || text.empty()) return false;
  return text[0] == '-' || (text[0] >= '0' && text[0] <= '9');
}

std::vector<Column> number_columns(const View& view, std::span<const ArrangedRow> rows, bool live) {
  const bool any_rate = std::ranges::any_of(rows, [](const ArrangedRow& row) { return row.per_second.has_value(); });
  std::vector<Column> columns;
  for (const RowNumber shown : view.shown) {
    Column& column = columns.emplace_back(Column{.right = true});
    const bool is_beside_rates = shown == RowNumber::count && any_rate && live;
    column.add_words(is_beside_rates ? "COUNT SO FAR" : header_of(shown, view));
    for (const ArrangedRow& row : rows) column.add_number(shown_number(shown, view, row));
  }
  if (!any_rate) return columns;
  Column& column =
      *columns.insert(view.order == RowOrder::rate ? columns.begin() : columns.end(), Column{.right = true});
  column.add_words(live ? "PER SECOND NOW" : "PER SECOND");
  for (const ArrangedRow& row : rows) column.add_number(rate_text(row.per_second.value_or(0)));
  return columns;
}

std::vector<Column> key_columns(const ShownTable& what, std::span<const ArrangedRow> rows) {
  const std::vector<TableColumn>& keys = what.table.keys;
  const std::size_t shown = what.view.shown_keys(what.table);
  std::vector<Column> columns;
  for (std::size_t i = 0; i < shown; ++i) {
    if (keys[i].type == ExpressionType::stack) continue;  // below the row
    Column& column = columns.emplace_back();
    column.add_words(keys[i].label);
    for (const ArrangedRow& row : rows) {
      std::string text = key_text(what.plan, keys[i], row.keys[i]);
      if (is_number(row.keys[i], text))
        column.add_number(std::move(text));
      else
        column.add_words(text);
    }
  }
  return columns;
}

/// Below a row, the kernel's first, as they were within each other.
void add_stacks(Lines& lines, const ArrangedRow& row, const Page& page) {
  const auto add = [&](const std::string& frame) {
    std::string line = "    " + io::escaped(frame);
    lines.push_back(page.redrawn ? io::shortened(line, page.room) : std::move(line));
  };
  for (const bool kernel : {true, false}) {
    for (const TableKey& key : row.keys) {
      const auto* stack = std::get_if<TableStack>(&key);
      if (stack == nullptr || stack->kernel != kernel) continue;
      if (!stack->names) add(fmt::format("<{}>", stack->why_none));
      if (!stack->names) continue;
      for (const std::string& frame : frame_texts(*stack->names)) add(frame);
    }
  }
}

/// Pictures of how many hits a second rows had lately. They are the first to go where there is no room.
void add_trends(std::vector<Column>& columns, const ShownTable& what, std::span<const ArrangedRow> rows,
                const Page& page) {
  constexpr std::size_t kShortest = 5;  // looks
  if (page.trends == nullptr || page.trends->width() < kShortest) return;
  Column trends;
  trends.add_number("TREND");
  for (const ArrangedRow& row : rows) trends.add_number(page.trends->picture(row, what.view.shown_keys(what.table)));
  std::size_t taken = trends.width + kGap.size();
  for (const Column& column : columns) taken += column.width + kGap.size();
  if (taken <= page.room) columns.push_back(std::move(trends));
}

void add_rows(Lines& lines, const ShownTable& what, std::span<const ArrangedRow> rows, const Page& page) {
  auto columns = number_columns(what.view, rows, page.live);
  std::vector<Column> keys = key_columns(what, rows);
  std::size_t room = page.room;
  for (const Column& key : keys) room -= std::min(room, key.width + kGap.size());
  add_trends(columns, what, rows, {.room = room, .trends = page.trends});
  std::ranges::move(keys, std::back_inserter(columns));
  const Grid grid(std::move(columns), page.room);
  for (std::size_t n = 0; n <= rows.size(); ++n) {
    grid.add_row(lines, n);
    if (n > 0) add_stacks(lines, rows[n - 1], page);
  }
}

/// "pid 17, comm bash: size", before a histogram of its own.
void add_title(Lines& lines, const ShownTable& what, const ArrangedRow& row, std::size_t room) {
  std::vector<Column> parts;
  for (std::size_t i = 0; i + 1 < what.table.keys.size(); ++i) {
    const TableColumn& key = what.table.keys[i];
    if (key.type == ExpressionType::stack) continue;
    const std::string text = key_text(what.plan, key, row.keys[i]);
    const std::string part = io::printable(fmt::format("{} {},", key.label, text));
    parts.emplace_back().add(part, !is_number(row.keys[i], text));
  }
  if (!parts.empty()) parts.back().cells[0].back() = ':';
  const std::string_view unit = what.view.value == "duration" ? " (ns)" : "";
  parts.emplace_back().add_words(fmt::format("{}{}", what.view.value, unit));
  const Grid title(std::move(parts), room, " ");
  title.add_row(lines, 0);
}

/// A bar as long as its part of `room`, by eighths of a column where there are blocks.
std::string bar_text(std::uint64_t count, std::uint64_t most, std::size_t room, bool blocks) {
  constexpr int kParts = 8;
  constexpr std::array<std::string_view, kParts> kPartial{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto part_of = [&](int parts) {
    return static_cast<std::size_t>(static_cast<Int128>(count) * static_cast<int>(room) * parts / most);
  };
  if (!blocks) return std::string(part_of(1), '@');
  const std::size_t eighths = std::max<std::size_t>(part_of(kParts), count > 0 ? 1 : 0);
  std::string bar;
  for (std::size_t n = 0; n < eighths / kParts; ++n) bar += "█";
  return bar.append(kPartial[eighths % kParts]);
}

/// Ranges, counts, and bars with the room that those leave. Where ranges are missing between two, "..." is.
std::vector<Column> histogram_columns(const View& view, const ArrangedRow& row, const Page& page) {
  Column ranges;
  Column counts{.right = true};
  std::uint64_t most = 1;
  for (const ArrangedRow::Bar& bar : row.bars) {
    ranges.add_number(range_text(view, bar.range));
    counts.add_number(fmt::format("{}", bar.count));
    most = std::max(most, bar.count);
  }
  constexpr std::size_t kShortest = 10;  // where lines may be of any length
  const std::size_t taken = ranges.width + counts.width + 2 * kGap.size();
  const std::size_t least = page.room == std::string_view::npos ? kShortest : 0;
  const std::size_t room = std::max(page.columns - std::min(taken, page.columns), least);
  Column bars;
  for (const ArrangedRow::Bar& bar : row.bars) {
    bars.add(bar_text(bar.count, most, room, page.blocks), false);
  }
  return {std::move(ranges), std::move(counts), std::move(bars)};
}

void add_histogram(Lines& lines, const ShownTable& what, const ArrangedRow& row, const Page& page) {
  add_title(lines, what, row, page.room);
  add_stacks(lines, row, page);
  std::vector<Column> columns = histogram_columns(what.view, row, page);
  const std::size_t label = columns.front().width;
  const Grid grid(std::move(columns), page.room);
  for (std::size_t n = 0; n < row.bars.size(); ++n) {
    if (n > 0 && !are_neighbours(row.bars[n - 1], row.bars[n])) lines.push_back(fmt::format("{:>{}}", "...", label));
    grid.add_row(lines, n);
  }
}

/// Whether a text among the keys that are shown is only the beginning of what it was, which others may have, too.
bool has_cut_keys(const ShownTable& what, std::span<const ArrangedRow> rows) {
  const auto is_cut = [](const TableKey& key) {
    const auto* text = std::get_if<TableText>(&key);
    return text != nullptr && text->truncated;
  };
  const std::size_t shown = what.view.shown_keys(what.table);
  return std::ranges::any_of(
      rows, [&](const ArrangedRow& row) { return std::ranges::any_of(std::span(row.keys).first(shown), is_cut); });
}

/// A key as one frame, or a stack as its own; escaped.
std::string folded_key(const ShownTable& what, std::size_t i, const ArrangedRow& row, FoldedMarks marks) {
  const auto* stack = std::get_if<TableStack>(&row.keys[i]);
  if (stack == nullptr) return io::printable(folded_word(key_text(what.plan, what.table.keys[i], row.keys[i])));
  return io::escaped(stack->names ? folded_text(*stack->names, marks) : fmt::format("[{}]", stack->why_none));
}

/// "comm;main;serve 17"
Lines folded_lines(const ShownTable& what) {
  const bool sums = what.table.real_sums;
  Lines lines;
  for (const auto& [text, row] : folded_rows(what, FoldedMarks::usual))
    lines.push_back(fmt::format("{} {}", text, sums ? fmt::format("{}", row.real_sum.value()) : decimal_text(row.sum)));
  return lines;
}

}  // namespace

std::map<std::string, TableRow> folded_rows(const ShownTable& what, FoldedMarks marks) {
  std::map<std::string, TableRow> folded;
  for (const ArrangedRow& row : what.rows) {
    std::string text;
    for (std::size_t i = 0; i < row.keys.size(); ++i)
      text.append(i > 0 ? ";" : "").append(folded_key(what, i, row, marks));
    TableRow& same = folded[text];
    same.real_sum.add(row.real_sum);
    if (!what.table.real_sums) same.sum += weight_of(what.view, row);
  }
  return folded;
}

std::vector<std::string> table_lines(const ShownTable& what, const Page& page) {
  const View& view = what.view;
  if (view.folded) return folded_lines(what);
  const std::size_t most = std::min(what.rows.size(), view.top);
  const std::span<const ArrangedRow> shown = std::span(what.rows).first(most);
  const std::size_t left_out = what.rows.size() - most;
  Lines lines;
  if (view.histogram == Histogram::none) {
    add_rows(lines, what, shown, page);
  } else {
    for (const ArrangedRow& row : shown) {
      if (!lines.empty()) lines.emplace_back();
      add_histogram(lines, what, row, page);
    }
  }
  if (left_out > 0) lines.push_back(fmt::format("and {} more", left_out));
  if (has_cut_keys(what, shown)) lines.emplace_back("a row whose text ends in ... may be several (--key-size)");
  return lines;
}

}  // namespace usdt::exports
