// SPDX-License-Identifier: BSD-2-Clause
// One readable line for each event:
//     14:03:07.123456 python3.11       4711    python:function__entry arg0=0x7f3c5a1b2e40 "t.py" arg1=... arg2=12
// Arguments with names are shown by them; what an argument plainly points to, behind it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "export/output.hpp"
#include "export/words.hpp"

namespace usdt::exports {

class TextOutput : public Output {
 public:
  /// `shows_likely_texts`: unless the question says it (AskedValues::likely_texts).
  TextOutput(const AnswerStart& start, const OutputPlace& place, bool shows_likely_texts = true);
  void show_header(Destination& shared);
  void look_up(const AttachPlan& plan, std::size_t probes) override;
  void know(std::size_t probes) override {
    names_.know(probes);
    make_room();
  }
  /// A notice says it.
  void write_followed(const Followed& /*followed*/) override {}
  void write_event(const Event& event) override {
    show_event(event);
    Output::printed(1);
  }
  /// On a terminal what was shown before gives its place to it.
  void slowest(const SlowestEvents& events, bool last) override;
  /// On a terminal the one before gives its place to it.
  void table(const ArrangedTable& look) override;
  /// On a terminal a picture of as much as it is wide for, again and again; elsewhere one of all in the end.
  void heat(const HeatSlice& slice, bool last) override;
  /// With --count: probes that were hit, most hits first.
  void write_summary(const SessionSummary& summary) override;

 protected:
  // --- what other forms of lines show, too ---
  /// The one list of --print; empty: every argument is shown.
  [[nodiscard]] const PrintList& list_of_all() const {
    static const PrintList none;
    return printed_.lists.empty() ? none : printed_.lists.front();
  }
  [[nodiscard]] const std::string& name_of(const Event& event) const { return names_[event.site().probe.value]; }
  /// Of --count, estimated where not all were looked at.
  [[nodiscard]] std::uint64_t number_of_hits(const Account& probe) const {
    return limited_ ? probe.estimated : probe.matched() * sample_;
  }
  /// A value by a directive: a text without the quotes it has among others, a number as it says.
  void show_as(const FormatPiece& piece, const Event& event, const PrintItem& item, std::size_t i);
  /// A value with its members.
  void show_whole(const Event& event, std::size_t n, bool hex);
  void show_error(std::string_view reason);

 private:
  // --- tables, pictures and counts: output_text_tables.cpp ---
  /// Whose table follows, and as of when, where there are several.
  void show_when();
  /// On a terminal in one line.
  void show_count(std::uint64_t hits, const PlannedProbe& probe);
  /// Lines of the terminal that it goes over.
  [[nodiscard]] std::size_t height_of(std::string_view line) const;
  /// Of a table, above as many other lines.
  void leave_out_what_is_too_high(std::vector<std::string>& lines, std::size_t others) const;

  // --- lines of events: output_text.cpp ---
  void make_room();
  void show_event(const Event& event);
  /// Those of --slowest say first what they are about.
  void show_line(const Event& event);
  /// A line as --format-string has it.
  void show_formatted(const Event& event);
  /// Of the format: line feeds and tabs are meant.
  void show_own(std::string_view text);
  void show_field(const Event& event, EventField field);
  void show_time(std::int64_t wall);
  void show_frames(const Result<Stack>& stack);

  // --- values: output_text_values.cpp ---
  void show_item(const Event& event, const PrintItem& item, std::size_t i);
  void show_value_of(const Event& event, const PrintItem& item, std::size_t i);
  [[nodiscard]] WordValue value_of(const Event& event, HitField word);
  /// One of the words of questions, among values.
  void show_word(const Event& event, const PrintItem& item);
  /// The same by a directive.
  void show_word_as(const FormatPiece& piece, const Event& event, HitField word);
  /// "ntop(x)"
  void show_address(const Event& event, std::size_t n);
  /// "buf(p, 16)"
  void show_bytes(const Event& event, std::size_t n);
  /// The same by a directive.
  void show_bytes_as(const FormatPiece& piece, const Event& event, std::size_t n);
  /// "{a=1 b={c=2}}", "[1 2 3]"; false: none is known.
  bool show_members(const Event& event, std::size_t whole, bool hex);
  /// A member or an element.
  void show_part(const Event& event, std::size_t n, bool hex);
  /// "[1 2 3 ...(97 more)]"
  void show_list(const Event& event, std::size_t whole, bool hex);
  void show_named(const Event& event, std::size_t n);
  void show_value(const Event& event, std::size_t n, bool hex);
  /// What a value is called, if it has a name.
  bool show_name(const Arg& arg, const Value& value);
  void show_text(const Event& event, std::size_t n);
  void show_text(const Text& text);

  /// One column less than the terminal has: some begin a new line behind the last one.
  [[nodiscard]] std::size_t room_of_lines() const { return std::max<std::size_t>(out_.terminal().width, 2) - 1; }
  /// That a table which takes its own place again and again may have.
  [[nodiscard]] std::size_t most_lines() const { return std::max<std::size_t>(out_.terminal().height, 4) - 2; }
  /// A table takes the place of the one before. Those of a script would take each other's.
  [[nodiscard]] bool redraws() const {
    return out_.terminal().interactive && view_.interval.has_value() && question_.empty();
  }

  /// Shows what `piece` prints; on a terminal below the line so far, where that has no room for it.
  template <class Piece>
  void show_piece(const Piece& piece) {
    const std::uint64_t at = out_.printed();
    piece();
    if (!out_.terminal().interactive || out_.width(line_) <= out_.terminal().width) return;
    out_.break_line(at);
    line_ = at + 1;
  }

  const Printed& printed_;
  bool count_only_;
  bool likely_texts_;
  std::uint32_t sample_;
  bool limited_;
  std::uint64_t began_;
  bool kernel_stacks_below_, user_stacks_below_;  ///< events
  const FormatString& format_;
  const View& view_;
  const std::string& question_;  ///< empty: of no script
  std::string label_;
  std::size_t table_height_ = 0;  ///< lines of the last table, on a terminal
  HeatMap heat_map_;
  Columns columns_;
  ShortNames names_;
  std::size_t measured_ = 0;  ///< of them, whose width is known
  std::uint64_t line_ = 0;    ///< Stream::printed() at the beginning of this line
  std::size_t probe_width_ = std::size("PROBE") - 1;
  std::time_t clock_second_ = -1;
  std::string clock_;
};

}  // namespace usdt::exports
