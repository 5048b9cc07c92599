// SPDX-License-Identifier: BSD-2-Clause
// One readable line for each event:
//     14:03:07.123456 python3.11       4711    python:function__entry arg0=0x7f3c5a1b2e40 "t.py" arg1=... arg2=12
// Arguments with names are shown by them; what an argument plainly points to, behind it.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "export/clock_text.hpp"
#include "export/output.hpp"
#include "export/text_items.hpp"
#include "export/text_tables.hpp"
#include "export/text_values.hpp"

namespace usdt::exports {

class TextOutput final : public Output {
 public:
  TextOutput(const AnswerStart& start, const OutputPlace& place);
  void show_header(Destination& shared);
  void look_up(const AttachPlan& plan, std::size_t probes) override;
  void know(std::size_t probes) override {
    items_.know(probes);
    make_room();
  }
  /// A notice says it.
  void write_followed(const Followed& /*followed*/) override {}
  void write_event(const Event& event) override {
    show_event(event);
    Output::printed(1);
  }
  void slowest(const SlowestEvents& events, bool last) override;
  void table(const ArrangedTable& look) override { tables_.show_table(plan(), look); }
  void heat(const HeatSlice& slice, bool last) override { tables_.show_heat(slice, last); }
  void write_summary(const SessionSummary& summary) override {
    if (view_.count_only) tables_.show_counts(plan(), summary);
  }

 private:
  void make_room();
  void show_event(const Event& event);
  /// Lines of --slowest say first what they are about.
  void show_line(const Event& event);
  void show_context(const Event& event);
  void show_attributes(const Event& event);
  void show_ender(const SpanEnder& thread);
  /// A line as --format-string has it.
  void show_formatted(const Event& event);
  /// A text of the format, whose line feeds and tabs are meant.
  void show_own(std::string_view text);
  void show_field(const Event& event, EventField field);
  void show_frames(const Result<Stack>& stack);

  /// Shows what `piece` prints; on a terminal below the line so far, where that has no room for it.
  template <class Piece>
  void show_piece(const Piece& piece) {
    const std::uint64_t at = out_.printed();
    piece();
    if (!out_.terminal().interactive || out_.width(line_) <= out_.terminal().width) return;
    out_.break_line(at);
    line_ = at + 1;
  }

  bool likely_texts_;
  bool kernel_stacks_below_, user_stacks_below_;  ///< events
  const Question& question_;
  const FormatString& format_;
  const View& view_;
  std::string label_;
  ValueWriter values_;
  ItemWriter items_;
  TextTables tables_;
  ClockText clock_;
  std::size_t measured_ = 0;  ///< names of probes whose width is known
  std::uint64_t line_ = 0;    ///< Stream::printed() at the beginning of this line
  std::size_t probe_width_ = std::size("PROBE") - 1;
};

}  // namespace usdt::exports
