// SPDX-License-Identifier: BSD-2-Clause
// One line of comma-separated values for each event or row, below a line with their names (RFC 4180): what programs for
// tables read.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <type_traits>
#include <utility>

#include "event/open_calls.hpp"
#include "export/formats.hpp"
#include "export/frames.hpp"
#include "export/table_output.hpp"
#include "export/table_words.hpp"
#include "export/text_items.hpp"
#include "export/text_tables.hpp"
#include "export/text_values.hpp"
#include "usdt/utf8.hpp"

namespace usdt::exports {
namespace {

class CsvOutput final : public Output {
 public:
  CsvOutput(const AnswerStart& start, const OutputPlace& place)
      : Output(start, place),
        view_(start.question.view),
        limits_(start.question.limits),
        printed_(start.printed),
        values_(out_, unreadable_),
        items_(start, out_, values_),
        events_(start.question.view.each_event() || start.question.view.slowest > 0),
        enders_(event::may_end_elsewhere(start.plan)),
        stacks_{start.question.stacks.kernel_depth > 0, start.question.stacks.user_depth > 0} {
    out_.be_exact();
    trace(start.plan, start.plan.probes.size());
    name_columns();
  }

  void look_up(const AttachPlan& plan, std::size_t probes) override { items_.look_up(plan, probes); }
  void know(std::size_t probes) override { items_.know(probes); }
  /// A notice says it.
  void write_followed(const Followed& /*followed*/) override {}
  void write_event(const Event& event) override {
    show(event);
    Output::printed(1);
  }
  /// The whole list again and again, as tables are: who reads it takes the last one by its time.
  void slowest(const SlowestEvents& events, bool last) override {
    if (!last) return;
    for (const KeptEvent& kept : events.events()) {
      around_.begin(kept);
      show(*kept.event);
    }
  }
  void table(const ArrangedTable& look) override;
  void heat(const HeatSlice& slice, bool last) override;
  void write_summary(const SessionSummary& summary) override;

 private:
  /// Makes one cell of what `print` prints; all but the first have a comma in front.
  template <class Print>
  requires std::is_invocable_v<const Print&>
  void cell(const Print& print) {
    if (cells_++ > 0) out_.print(",");
    const std::uint64_t at = out_.printed();
    print();
    out_.make_cell(at);
  }
  void cell(std::string_view text) {
    cell([&] { out_.print("{}", text); });
  }
  void cell_of_value(std::string_view text) {
    cell([&] { out_.print("{}", io::unambiguous(text)); });
  }
  void end_line() {
    out_.print("\n");
    cells_ = 0;
  }

  /// The one list of --print; empty: every argument is shown.
  [[nodiscard]] const PrintList& list_of_all() const {
    static const PrintList kNone;
    return printed_.lists.empty() ? kNone : printed_.lists.front();
  }
  void name_columns();
  [[nodiscard]] std::string column_name(RowNumber number) const;
  void show(const Event& event);
  void show_arguments(const Event& event);
  void argument(const Event& event, std::size_t n);
  void ender(const std::optional<SpanEnder>& thread);
  void time(std::int64_t wall);
  void row_of(const ShownTable& what, const ArrangedRow& row);
  void keys_of(const ShownTable& what, const ArrangedRow& row);
  void stack(const Result<Stack>& stack) {
    cell_of_value(stack ? folded_text(*stack) : fmt::format("<{}>", stack.error().message));
  }

  const View& view_;
  const AskedLimits& limits_;
  const Printed& printed_;
  ValueWriter values_;
  ItemWriter items_;
  bool events_;
  bool enders_;  ///< spans may end in another thread than they began in
  struct {
    bool kernel, user;
  } stacks_;
  std::vector<std::string> names_of_values_;  ///< columns of arguments, where no list says what is shown
  std::size_t cells_ = 0;                     ///< of this line
  std::int64_t wall_time_now_ = 0;            ///< of the table at hand
  bool named_ = false;                        ///< the first line of a table
};

/// "sum(size)": what people see as "SUM(size)", and in JSON is "sum".
std::string CsvOutput::column_name(RowNumber number) const {
  std::string name = header_of(number, view_);
  const auto end = std::ranges::find(name, '(');
  std::transform(name.begin(), end, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

/// Arguments of all sites by their names; what comes later and has others is in the last column.
void CsvOutput::name_columns() {
  if (!events_) return;
  for (const char* name : {"time", "pid", "tid", "cpu", "comm", "probe", "duration"}) cell(std::string_view(name));
  if (enders_)
    for (const char* name : {"ended_by_pid", "ended_by_tid", "ended_by_comm"}) cell(std::string_view(name));
  const PrintList& list = list_of_all();
  for (const PrintItem& item : list) cell(item.name());
  if (list.empty()) {
    for (const PlannedSite& site : plan().sites) {
      if (plan().spans && !site.span) continue;
      const std::vector<Arg>& args = plan().args[site.args];
      for (std::size_t n = 0; n < args.size(); ++n) {
        std::string name = name_of_argument(args[n], n);
        if (args[n].derived || std::ranges::find(names_of_values_, name) != names_of_values_.end()) continue;
        cell(name);
        names_of_values_.push_back(std::move(name));
      }
    }
    cell(std::string_view("others"));
  }
  if (stacks_.kernel) cell(std::string_view("kstack"));
  if (stacks_.user) cell(std::string_view("ustack"));
  end_line();
}

void CsvOutput::time(std::int64_t wall) {
  const std::time_t second = wall / 1'000'000'000;
  std::tm utc{};
  ::gmtime_r(&second, &utc);
  cell(fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                   utc.tm_hour, utc.tm_min, utc.tm_sec, wall % 1'000'000'000));
}

void CsvOutput::show(const Event& event) {
  time(wall_time(event));
  cell([&] { out_.print("{}", event.pid()); });
  cell([&] { out_.print("{}", event.tid()); });
  cell([&] { out_.print("{}", event.cpu()); });
  cell_of_value(event.comm());
  cell(items_.name_of(event));
  cell([&] {
    if (event.duration() > 0) out_.print("{}", event.duration());
  });
  if (enders_) ender(event.ended_by());
  const PrintList& list = list_of_all();
  for (std::size_t i = 0; i < list.size(); ++i) cell([&] { items_.show_as({.conversion = 's'}, event, list[i], i); });
  if (list.empty()) show_arguments(event);
  if (stacks_.kernel) stack(around_.kernel_stack());
  if (stacks_.user) stack(around_.user_stack());
  end_line();
}

/// Nothing: a span that has not ended, or what is none.
void CsvOutput::ender(const std::optional<SpanEnder>& thread) {
  const auto number = [&](std::uint32_t SpanEnder::*which) {
    cell(thread ? fmt::format("{}", (*thread).*which) : std::string());
  };
  number(&SpanEnder::pid), number(&SpanEnder::tid);
  cell_of_value(thread ? thread->comm : std::string_view());
}

void CsvOutput::show_arguments(const Event& event) {
  std::vector<bool> shown(event.arg_count());
  for (const std::string& name : names_of_values_) {
    cell([&] {
      for (std::size_t n = 0; n < event.arg_count(); ++n) {
        if (shown[n] || event.arg_info(n).derived || name_of_argument(event.arg_info(n), n) != name) continue;
        shown[n] = true;
        return argument(event, n);
      }
    });
  }
  cell([&] {
    bool any = false;
    for (std::size_t n = 0; n < event.arg_count(); ++n) {
      if (shown[n] || event.arg_info(n).derived) continue;
      out_.print("{}{}=", std::exchange(any, true) ? " " : "", name_of_argument(event.arg_info(n), n));
      argument(event, n);
    }
  });
}

/// A text without quotes, as all of a cell is.
void CsvOutput::argument(const Event& event, std::size_t n) {
  const Arg& arg = event.arg_info(n);
  if (is_to_come(plan(), view_, arg)) return;
  const bool is_text = arg.type.kind == TypeKind::text || (arg.length && !arg.is_list());
  if (!is_text) return values_.show_whole(event, n, false);
  const auto text = event.text(n);
  if (!text) return values_.show_error(text.error().message);
  out_.print("{}{}", io::unambiguous(text->truncated ? without_partial_utf8(text->bytes) : text->bytes),
             text->truncated ? "..." : "");
}

void CsvOutput::keys_of(const ShownTable& what, const ArrangedRow& row) {
  for (std::size_t i = 0; i < what.view.shown_keys(what.table); ++i) {
    const auto* stack = std::get_if<TableStack>(&row.keys[i]);
    const auto* text = std::get_if<TableText>(&row.keys[i]);
    if (stack != nullptr)
      cell_of_value(stack->names ? folded_text(*stack->names) : fmt::format("<{}>", stack->why_none));
    else if (text != nullptr)
      cell_of_value(plain_key_text(what.plan, what.table.keys[i], row.keys[i]));
    else
      cell(key_text(what.plan, what.table.keys[i], row.keys[i]));
  }
}

void CsvOutput::row_of(const ShownTable& what, const ArrangedRow& row) {
  const auto begin = [&] {
    if (view_.interval) time(wall_time_now_);
    keys_of(what, row);
  };
  if (view_.histogram == Histogram::none) {
    begin();
    for (const RowNumber shown : view_.shown) cell(number_text(shown, row));
    if (view_.rates) cell(fmt::format("{:.3f}", row.per_second.value_or(0)));
    return end_line();
  }
  for (const ArrangedRow::Bar& bar : row.bars) {
    begin();
    if (const auto* reals = std::get_if<RealBucket>(&bar.range)) {
      cell(fmt::format("{}", reals->first));
      cell(fmt::format("{}", reals->end));
    } else {
      cell(decimal_text(std::get<Bucket>(bar.range).first));
      cell(decimal_text(std::get<Bucket>(bar.range).last));
    }
    cell(fmt::format("{}", bar.count));
    end_line();
  }
}

void CsvOutput::table(const ArrangedTable& look) {
  const ShownTable what{view_, plan(), look.table, look.rows};
  if (!std::exchange(named_, true)) {
    if (view_.interval) cell(std::string_view("time"));
    for (std::size_t i = 0; i < view_.shown_keys(look.table); ++i) cell(look.table.keys[i].label);
    if (view_.histogram == Histogram::none)
      for (const RowNumber shown : view_.shown) cell(column_name(shown));
    else
      for (const char* name : {"first", "last", "count"}) cell(std::string_view(name));
    if (view_.rates) cell(std::string_view("per_second"));
    end_line();
  }
  wall_time_now_ = static_cast<std::int64_t>(event_clock()) + read_clocks().wall_offset;
  for (std::size_t n = 0; n < std::min(look.rows.size(), view_.top); ++n) row_of(what, look.rows[n]);
}

void CsvOutput::heat(const HeatSlice& slice, bool /*last*/) {
  if (!std::exchange(named_, true)) {
    for (const char* name : {"from", "to", "first", "last", "count"}) cell(std::string_view(name));
    end_line();
  }
  for (const auto& [key, count] : slice.counts) {
    time(slice.from);
    time(slice.to);
    const BucketRange range = range_of(view_, slice.reals, key, key);
    if (const auto* reals = std::get_if<RealBucket>(&range)) {
      cell(fmt::format("{}", reals->first));
      cell(fmt::format("{}", reals->end));
    } else {
      cell(decimal_text(std::get<Bucket>(range).first));
      cell(decimal_text(std::get<Bucket>(range).last));
    }
    cell(fmt::format("{}", count));
    end_line();
  }
}

void CsvOutput::write_summary(const SessionSummary& summary) {
  if (!view_.count_only) return;
  cell(std::string_view("hits"));
  cell(std::string_view("probe"));
  end_line();
  for (std::size_t i = 0; i < summary.probes.size(); ++i) {
    if (summary.probes[i].matched() == 0) continue;
    cell(fmt::format("{}", number_of_hits(limits_, summary.probes[i])));
    cell(full_name(plan(), plan().probes[Index<PlannedProbe>(i)]));
    end_line();
  }
}

}  // namespace

std::unique_ptr<Output> make_csv_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<CsvOutput>(start, place);
}

}  // namespace usdt::exports
