// SPDX-License-Identifier: BSD-2-Clause
#include "export/text_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>

#include "base/counted.hpp"
#include "export/table_output.hpp"
#include "io/width.hpp"

namespace usdt::exports {
namespace {

io::Style style_of(unsigned level) {
  using io::Style;
  constexpr std::array<Style, kHeatLevels + 1> kStyles{Style::plain, Style::heat1, Style::heat2,
                                                       Style::heat3, Style::heat4, Style::heat5};
  return kStyles[level];
}

}  // namespace

std::uint64_t number_of_hits(const AskedLimits& limits, const Account& probe) {
  return limits.max_overhead > 0 ? probe.estimated : probe.matched() * limits.sample;
}

std::uint64_t TextTables::begin_list() {
  if (redraws() && height_ > 0) out_.erase_lines(height_);
  if (!redraws()) show_when();
  return out_.printed();
}

void TextTables::end_list(std::uint64_t begin, bool last) {
  if (redraws()) height_ = out_.cut(begin, last ? SIZE_MAX : most_lines(), room_of_lines());
}

void TextTables::show_table(const AttachPlan& plan, const ArrangedTable& look) {
  const io::Terminal& terminal = out_.terminal();
  const std::optional<Overhead>& overhead = look.overhead;
  Page page{.columns = terminal.width, .live = !look.last, .redrawn = redraws() && !look.last};
  if (terminal.interactive) page.columns = page.room = room_of_lines();
  page.blocks = terminal.interactive && io::is_utf8_locale();
  if (redraws() && !look.last) trends_.look(look.rows, view_.shown_keys(look.table));  // the last rates are of all
  if (redraws() && page.blocks && view_.rates) page.trends = &trends_;
  std::vector<std::string> lines = table_lines({view_, plan, look.table, look.rows}, page);
  std::vector<std::string> notes;
  if (limits_.sample > 1) notes.push_back(fmt::format("estimated from one in {} hits", limits_.sample));
  if (is_estimated() && !overhead) notes.emplace_back("estimated from the weights of events");
  if (overhead && overhead->looked_at < 1) notes.push_back(estimated_text(*overhead));
  if (redraws()) {
    if (height_ > 0) out_.rise_lines(height_);
    if (!look.last) leave_out_what_is_too_high(lines, notes.size());  // which scrolls
  } else {
    show_when();
  }
  std::ranges::move(notes, std::back_inserter(lines));
  height_ = 0;
  for (const std::string& line : lines) {
    out_.print("{}", line);
    end_line();
    height_ += height_of(line);
  }
  if (redraws()) out_.erase_below();
}

void TextTables::end_line() { redraws() ? out_.end_risen_line() : out_.print("\n"); }

void TextTables::show_heat(const HeatSlice& slice, bool last) {
  heat_map_.add(slice);
  const io::Terminal& terminal = out_.terminal();
  if (!redraws() && !last) return;
  if (!name_.empty()) out_.print("{}:\n", name_);
  HeatFrame frame{.width = terminal.width, .from = heat_map_.slices().front().from, .to = slice.to};
  if (terminal.interactive) {
    constexpr std::size_t label = 12;
    frame.width -= 1;
    frame.height = terminal.height;
    frame.blocks = io::is_utf8_locale();
    const double shown = static_cast<double>(frame.width - std::min(frame.width, label)) * *view_.interval * 1e9;
    if (static_cast<double>(frame.to) - static_cast<double>(frame.from) > shown)
      frame.from = frame.to - static_cast<std::int64_t>(shown);
    if (height_ > 0) out_.rise_lines(height_);
  }
  const auto lines = draw(heat_map_, view_, frame);
  height_ = lines.size();
  for (const auto& line : lines) {
    for (const HeatPart& part : line) out_.print("{}", out_.styled(part.text, style_of(part.level)));
    end_line();
  }
  if (redraws()) out_.erase_below();
}

void TextTables::show_counts(const AttachPlan& plan, const SessionSummary& summary) {
  std::vector<std::size_t> hit;
  for (std::size_t i = 0; i < summary.probes.size(); ++i)
    if (summary.probes[i].matched() > 0) hit.push_back(i);
  const auto number = [&](std::size_t i) { return number_of_hits(limits_, summary.probes[i]); };
  std::stable_sort(hit.begin(), hit.end(), [&](std::size_t a, std::size_t b) { return number(a) > number(b); });
  if (!name_.empty()) out_.print("{}:\n", name_);
  out_.print("{:>12}  {}\n", "HITS", "PROBE");
  for (const std::size_t i : hit) show_count(number(i), full_name(plan, plan.probes[Index<PlannedProbe>(i)]));
  if (limits_.sample > 1) out_.print("{}\n", fmt::format("estimated from one in {} hits", limits_.sample));
  if (summary.overhead && summary.overhead->looked_at < 1) out_.print("{}\n", estimated_text(*summary.overhead));
  if (is_estimated() && !summary.overhead) out_.print("estimated from the weights of events\n");
}

void TextTables::show_when() {
  if (!view_.interval && name_.empty()) return;
  out_.print("{}", label_);
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  clock_.show(out_, now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec);
  out_.print("\n");
}

void TextTables::show_count(std::uint64_t hits, const std::string& probe) {
  const std::uint64_t at = out_.printed();
  out_.print("{:>12}  ", hits);
  const std::string name = io::printable(probe);
  const std::size_t taken = out_.width(at);
  const std::size_t room = room_of_lines() - std::min(taken, room_of_lines());
  out_.print("{}\n", out_.terminal().interactive ? io::shortened(name, room) : name);
}

std::size_t TextTables::height_of(std::string_view line) const {
  const std::size_t width = std::max<std::size_t>(out_.terminal().width, 1);
  return std::max<std::size_t>((io::width_of(line) + width - 1) / width, 1);
}

void TextTables::leave_out_what_is_too_high(std::vector<std::string>& lines, std::size_t others) const {
  const std::size_t most = std::max<std::size_t>(most_lines(), others + 2) - others;
  std::size_t height = 0;
  std::size_t left = 0;
  for (; left < lines.size() && height + height_of(lines[left]) <= most; ++left) height += height_of(lines[left]);
  if (left == lines.size()) return;
  left -= left > 0 && height == most ? 1 : 0;  // for the line that says so
  const std::size_t more = lines.size() - left;
  lines.resize(left);
  lines.push_back(fmt::format("... and {} more on a higher terminal", counted(more, "line")));
}

}  // namespace usdt::exports
