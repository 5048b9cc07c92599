// SPDX-License-Identifier: BSD-2-Clause
// A report of a trace as one page for a browser, which needs no network: the question, the ledger, histograms with
// percentiles, heat maps, a time line, a flame graph and tables (report_page.html). Events are folded as they come, so
// that neither memory nor the page grow with their number.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "export/asked_text.hpp"
#include "export/formats.hpp"
#include "export/page.hpp"
#include "export/report_data.hpp"
#include "export/stack_output.hpp"
#include "export/stack_tree.hpp"
#include "export/table_words.hpp"
#include "export/text_items.hpp"
#include "export/text_tables.hpp"
#include "export/text_values.hpp"
#include "export/value_text.hpp"
#include "io/escape.hpp"
#include "report_page.hpp"
#include "usdt/utf8.hpp"

namespace usdt::exports {
namespace {

using io::json_key;
using io::json_text;

struct WholeNumber {
  expr::Number number;
  bool is_address = false;  ///< it looks like one
};

/// Prints the values of events one by one.
class ValueTexts {
 public:
  ValueTexts(const AnswerStart& start, std::uint64_t& unreadable)
      : question_(start.question),
        printed_(start.printed),
        out_([this](std::string_view text) {
          text_.append(text);
          return true;
        }),
        values_(out_, unreadable),
        items_(start, out_, values_) {}

  void look_up(const AttachPlan& plan, std::size_t probes) {
    plan_ = &plan;
    columns_ = Columns(plan, printed_);
    items_.look_up(plan, probes);
  }
  void know(std::size_t probes) { items_.know(probes); }
  [[nodiscard]] const ShortNames& names() const noexcept { return items_.names(); }

  /// Gives each value that is shown of an event to `take`: its name, its text, and if it is a whole number, that.
  template <class Take>
  void each(const Event& event, const Take& take) {
    const PrintList& list = printed_.of(event.site());
    for (std::size_t i = 0; i < list.size(); ++i) {
      print([&] { items_.show_as({.conversion = 's'}, event, list[i], i); });
      const auto position = columns_.position(event, i);
      const Arg* const called = columns_.called(event, i);
      const bool has_names = called != nullptr && called->type.kind == TypeKind::enumeration;
      const bool plain = position && list[i].form == PrintItem::Form::value && !has_names;
      const auto made = columns_.computed(event, i);
      const bool is_number = made && list[i].form == PrintItem::Form::value && !has_names;
      take(list[i].name(), text_,
           plain       ? whole_number(event.arg_info(*position), event.value(*position))
           : is_number ? whole_number(made->arg, made->value)
                       : std::nullopt);
    }
    for (std::size_t n = 0; list.empty() && n < event.arg_count(); ++n) {
      const Arg& arg = event.arg_info(n);
      if (arg.derived || is_to_come(*plan_, question_.view, arg)) continue;
      const auto text = unasked_text(*plan_, event, n, question_.values.likely_texts.value_or(true));
      print([&] { text ? values_.show_text(*text) : values_.show_whole(event, n, false); });
      take(name_among_ends(arg, n), text_, text ? std::nullopt : whole_number(arg, event.value(n)));
    }
  }

 private:
  template <class Print>
  void print(const Print& print) {
    text_.clear();
    print();
    static_cast<void>(out_.flush());
  }

  /// A number that may say how large something is; those of an enum have names.
  static std::optional<WholeNumber> whole_number(const Arg& arg, const Value& value) {
    if (arg.type.kind != TypeKind::integer || arg.type.size > 8 || arg.length) return std::nullopt;
    const auto bits = integer_bits(value);
    if (!bits || !enumerator_name(arg, *bits).empty()) return std::nullopt;
    const bool is_signed = std::holds_alternative<std::int64_t>(value);
    return WholeNumber{{*bits, is_signed}, !is_signed && looks_like_address(arg, *bits)};
  }

  const Question& question_;
  const Printed& printed_;
  const AttachPlan* plan_ = nullptr;
  std::string text_;
  io::Stream out_;
  ValueWriter values_;
  ItemWriter items_;
  Columns columns_;
};

class ReportOutput final : public StackOutput {
 public:
  ReportOutput(const AnswerStart& start, const OutputPlace& place)
      : StackOutput(start, place),
        question_(start.question),
        printed_(start.printed),
        has_stacks_(start.question.stacks.kernel_depth > 0 || start.question.stacks.user_depth > 0),
        values_(start, unreadable_) {
    trace(start.plan, start.plan.probes.size());
  }

  void know(std::size_t probes) override { values_.know(probes); }
  void slowest(const SlowestEvents& events, bool last) override {
    if (!last) return;
    for (const KeptEvent& kept : events.events()) {
      around_.begin(kept);
      event(*kept.event);
    }
  }
  void heat(const HeatSlice& slice, bool /*last*/) override { heat_map_.add(slice); }

 protected:
  void look_up(const AttachPlan& plan, std::size_t probes) override {
    StackOutput::look_up(plan, probes);
    values_.look_up(plan, probes);
    folds_.probes.resize(plan.probes.size());
  }
  bool add_event(const Event& event, const StacksOfEvent& stacks) override;
  void add_rows(const ArrangedTable& look) override;
  void write_all(const SessionSummary& summary) override;

 private:
  void add_times(const Event& event);
  void add_value(const Event& event, report::KeptSpan& span, const std::string& name, const std::string& text,
                 std::optional<WholeNumber> number);
  void write_counts(const SessionSummary& summary);
  void write_stacks(io::JsonWriter& json);

  const Question& question_;
  const Printed& printed_;
  bool has_stacks_;
  ValueTexts values_;
  report::EventFolds folds_;
  FoldedStacks stacks_{kMostStackBytes};
  std::uint64_t stacks_left_out_ = 0;  ///< events whose stacks there was no room for
  FoldedTable stack_rows_;
  HeatMap heat_map_;
  rapidjson::StringBuffer table_;  ///< the last one, as it is put in the page
};

/// A part of a question, which may be very long.
std::string shortened_text(const std::string& text) {
  constexpr std::size_t kMost = 2000;
  std::string safe = io::printable(text);
  if (safe.size() > kMost) safe = std::string(without_partial_utf8(std::string_view(safe).substr(0, kMost))) + "...";
  return safe;
}

/// An event whose stack has no room is in all of the report but the flame graph.
bool ReportOutput::add_event(const Event& event, const StacksOfEvent& stacks) {
  add_times(event);
  if (has_stacks_ && !stacks_.add(folded_text(stacks), event.weight())) ++stacks_left_out_;
  report::KeptSpan span{.begin = event.timestamp(),
                        .duration = event.duration(),
                        .thread = folds_.threads.add(event),
                        .probe = event.site().probe.value};
  values_.each(event, [&](const std::string& name, const std::string& text, std::optional<WholeNumber> number) {
    add_value(event, span, name, text, number);
  });
  folds_.spans.add(std::move(span));
  return true;
}

void ReportOutput::add_times(const Event& event) {
  if (folds_.last == 0) folds_.wall_offset = around_.wall_offset();
  folds_.first = std::min(folds_.first, event.timestamp());
  folds_.last = std::max(folds_.last, event.timestamp() + event.duration());
  const std::uint32_t number = event.site().probe.value;
  report::ProbeEvents& probe = folds_.probes[number];
  ++probe.count;
  if (probe.count == 1 && folds_.probe_rows < report::kMostProbeRows) {
    probe.has_row = true;
    ++folds_.probe_rows;
  }
  folds_.hits.add(event.timestamp(), probe.has_row ? std::int64_t{number} : -1);
  if (event.duration() == 0 && !event.site().span) return;
  if (probe.durations.count() == 0 && folds_.timed_probes < report::kMostTimedProbes) {
    probe.is_timed = true;
    ++folds_.timed_probes;
  }
  (probe.is_timed ? probe.durations : folds_.other_durations).add({event.duration(), false});
  folds_.durations.add(event.timestamp(), report::log2_key({event.duration(), false}, report::kHeatSubBits));
}

/// Adds a value to those of a span, as far as there is room.
void append_value(std::string& values, const std::string& name, const std::string& text) {
  if (values.size() >= report::kMostValueBytes) return;
  values.append(values.empty() ? "" : " ").append(io::printable(name)).append("=").append(text);
  if (values.size() <= report::kMostValueBytes) return;
  values.resize(without_partial_utf8(std::string_view(values).substr(0, report::kMostValueBytes)).size());
  values.append("...");
}

void ReportOutput::add_value(const Event& event, report::KeptSpan& span, const std::string& name,
                             const std::string& text, std::optional<WholeNumber> number) {
  append_value(span.values, name, text);
  auto known = folds_.values.find(name);
  if (known == folds_.values.end()) {
    if (folds_.values.size() >= report::kMostValues) {
      ++folds_.unnamed_values;
      return;
    }
    known = folds_.values.try_emplace(name).first;
  }
  report::NamedValue& value = known->second;
  value.texts.add(without_partial_utf8(std::string_view(text).substr(0, report::kMostValueBytes)), event.duration());
  if (!number) return;
  value.is_address = value.is_address || number->is_address;
  if (value.is_address) return;
  if (value.numbers.numbers.count() == 0) value.number = folds_.measures++;
  value.numbers.numbers.add(number->number);
  if (value.number >= report::kRowsOfSpans) return;
  const std::int64_t row = report::log2_key(number->number, report::kHeatSubBits);
  value.numbers.heat.add(event.timestamp(), row);
  span.rows[value.number] = static_cast<std::int16_t>(row);
}

void ReportOutput::add_rows(const ArrangedTable& look) {
  const ShownTable shown{view(), plan(), look.table, look.rows};
  table_.Clear();
  io::JsonWriter json(table_);
  report::write_report_table(json, shown);
  const bool adds_up = view().shown.size() == 1 || (view().shown.size() == 2 && view().shown[1] == RowNumber::sum);
  if (view().has_stacks() && adds_up && !view().has_buckets()) stack_rows_ = folded_table(shown);
}

/// The table of a question that asks for counts alone.
void ReportOutput::write_counts(const SessionSummary& summary) {
  io::JsonWriter json(table_);
  json.StartObject();
  json_key(json, "columns"), json.StartArray();
  for (const std::string_view name : {"PROBE", "HITS"}) json_text(json, name);
  json.EndArray();
  json_key(json, "keys"), json.Uint(1);
  json_key(json, "rows"), json.StartArray();
  for (std::size_t n = 0; n < summary.probes.size(); ++n) {
    const std::uint64_t hits = number_of_hits(question_.limits, summary.probes[n]);
    if (summary.probes[n].matched() == 0) continue;
    json.StartArray();
    json_text(json,
              io::printable(full_name(plan(), plan().probes[Index<PlannedProbe>(static_cast<std::uint32_t>(n))])));
    json_text(json, fmt::format("{}", hits)), json.Uint64(hits);
    json.EndArray();
  }
  json.EndArray();
  json.EndObject();
}

void ReportOutput::write_stacks(io::JsonWriter& json) {
  StackTree tree;
  for (const FoldedRow& row : stack_rows_.rows) tree.add(row.stack, row.number);
  for (const auto& [stack, weight] : stacks_.all()) tree.add(stack, fmt::format("{:.0f}", weight));
  const std::size_t folded = tree.fold(report::kMostFrames);
  json_key(json, "stacks"), json.StartObject();
  const bool sums = view().shown.size() == 2;
  json_key(json, "unit"), json_text(json, sums ? header_of(RowNumber::sum, view()) : "hits");
  json_key(json, "folded"), json.Uint64(folded);
  json_key(json, "left_out"), json.Uint64(stacks_left_out_);
  json_key(json, "not_drawn"), json.Uint64(stack_rows_.not_drawn);
  tree.write(json, report::kMostFrameBytes);
  json.EndObject();
}

void ReportOutput::write_all(const SessionSummary& summary) {
  rapidjson::StringBuffer text;
  io::JsonWriter json(text);
  json.StartObject();
  json_key(json, "title"), json_text(json, io::printable(title()));
  json_key(json, "question"), json.StartArray();
  for (const auto& [what, asked] : asked_text(question_, title(), printed_)) {
    json.StartArray();
    json_text(json, what), json_text(json, shortened_text(asked));
    json.EndArray();
  }
  json.EndArray();
  report::write_ledger(json, summary, question_, plan());
  if (view().count_only) write_counts(summary);
  if (table_.GetSize() > 0)
    json_key(json, "table"), json.RawValue(table_.GetString(), table_.GetSize(), rapidjson::kObjectType);
  if (!heat_map_.slices().empty()) report::write_slices(json, heat_map_, view());
  if (!stacks_.all().empty() || !stack_rows_.rows.empty() || stack_rows_.not_drawn > 0) write_stacks(json);
  if (folds_.last > 0) report::write_events(json, folds_, values_.names());
  json.EndObject();
  put_in_page(out_, kReportPage, {text.GetString(), text.GetSize()});
}

}  // namespace

std::unique_ptr<Output> make_report_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<ReportOutput>(start, place);
}

}  // namespace usdt::exports
