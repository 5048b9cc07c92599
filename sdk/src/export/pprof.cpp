// SPDX-License-Identifier: BSD-2-Clause
// Stacks as a profile of pprof, deflated: with addresses, files, lines and inlined functions, so that viewers can do
// what flame graphs cannot.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "export/formats.hpp"
#include "export/profile.hpp"
#include "export/stack_output.hpp"
#include "export/table_words.hpp"
#include "http/gzip.hpp"
#include "usdt/clock.hpp"

namespace usdt::exports {
namespace {

using pprof::ProfileBuilder;
using pprof::SampleLabel;

class PprofOutput final : public StackOutput {
 public:
  PprofOutput(const AnswerStart& start, const OutputPlace& place)
      : StackOutput(start, place),
        question_(start.question),
        is_live_(start.layout != nullptr),
        // Rows are as many as the table has room for.
        profile_(start.question.view.no_events() ? std::numeric_limits<std::size_t>::max() : kMostStackBytes) {
    trace(start.plan, start.plan.probes.size());
  }

 protected:
  bool add_event(const Event& event, const StacksOfEvent& stacks) override {
    const std::int64_t time = wall_time(event);
    first_ = first_ == 0 ? time : std::min(first_, time);
    last_ = std::max(last_, time);
    profile_.begin_stack();
    for (const Result<Stack>* stack : {stacks.kernel, stacks.user}) {  // the innermost function first
      if (stack == nullptr) continue;
      *stack ? profile_.add_frames(**stack) : profile_.add_reason(stack->error().message);
    }
    return profile_.add_sample({}, {.hits = event.weight()});
  }

  void add_rows(const ArrangedTable& look) override {
    for (const ArrangedRow& row : look.rows) add_row(look, row);
  }

  void write_all(const SessionSummary& summary) override {
    if (first_ == 0 && is_live_) take_time_of_trace();
    ProfileBuilder::About about{.types = {{"hits", "count"}},
                                .period = question_.limits.sample,
                                .began = first_,
                                .took = last_ - first_,
                                .comments = {title(), ledger_text(summary)}};
    if (view().shown.size() == 2)
      about.types.push_back(
          {fmt::format("sum({})", view().value), view().is_about_durations() ? "nanoseconds" : "count"});
    const std::string file = http::gzip(profile_.encode(about));
    out_.bytes(std::as_bytes(std::span(file)));
  }

 private:
  /// Rows do not say when their hits were: some time since the trace began.
  void take_time_of_trace() {
    const auto of_day = [&](std::uint64_t time) { return static_cast<std::int64_t>(time) + began_.wall_offset; };
    first_ = of_day(began_.event_clock);
    last_ = of_day(event_clock());
  }
  void add_row(const ArrangedTable& look, const ArrangedRow& row) {
    std::vector<SampleLabel> labels;
    profile_.begin_stack();
    add_stack(row, true);
    add_stack(row, false);
    for (std::size_t i = 0; i < view().shown_keys(look.table); ++i) {
      const TableKey& key = row.keys[i];
      if (std::holds_alternative<TableStack>(key)) continue;
      const TableColumn& column = look.table.keys[i];
      const auto* number = std::get_if<std::int64_t>(&key);
      if (number != nullptr && !column.field && column.form == KeyForm::decimal)
        labels.push_back({column.label, *number});
      else
        labels.push_back({column.label, plain_key_text(plan(), column, key)});
    }
    const double sum = look.table.real_sums ? row.real_sum.value() : static_cast<double>(row.sum);
    static_cast<void>(profile_.add_sample(labels, {.hits = static_cast<double>(row.count), .sum = sum}));
  }

  void add_stack(const ArrangedRow& row, bool kernel) {
    for (const TableKey& key : row.keys) {
      const auto* stack = std::get_if<TableStack>(&key);
      if (stack == nullptr || stack->kernel != kernel) continue;
      stack->names ? profile_.add_frames(*stack->names) : profile_.add_reason(stack->why_none);
    }
  }

  const Question& question_;
  bool is_live_;
  ProfileBuilder profile_;
  ClockReading began_ = read_clocks();
  std::int64_t first_ = 0, last_ = 0;  ///< times of day of events; 0: not known
};

}  // namespace

std::unique_ptr<Output> make_pprof_output(const AnswerStart& start, const OutputPlace& place) {
  return std::make_unique<PprofOutput>(start, place);
}

}  // namespace usdt::exports
