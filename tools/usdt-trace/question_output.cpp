// SPDX-License-Identifier: BSD-2-Clause
// What a question shows of all its hits: tables, the slowest, and its account.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "attached.hpp"
#include "notice.hpp"
#include "output.hpp"
#include "question.hpp"

namespace usdt_trace {
namespace {

/// What this thread has worked, as far as it did not wait.
std::chrono::nanoseconds own_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

void Question::begin_output() {
  rates_.begin(Clock::now());
  around_.emplace(flags_.question, flags_.question.points.debuginfod ? run_.told_over() : usdt::StopToken());
  if (!flags_.question.recording.file.empty()) {
    auto recorder = make_recorder(*tracer_, printed_, flags_, *around_, sinks_.back().stream());
    recorder_ = recorder.get();
    sinks_.back().show_by(std::move(recorder));
  }
  if (flags_.question.recording.file.empty() || !flags_.output.file.empty())
    sinks_.front().show_by(line_output(tracer_->plan(), printed_, flags_, *around_, sinks_.front().stream()));
}

/// With --interval, when it is time; where some were missed, the next one is not late for them.
usdt::Result<void> Question::show_table_so_far() {
  const auto now = Clock::now();
  if (!flags_.question.view.interval || now < next_table_) return {};
  const auto interval =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*flags_.question.view.interval));
  const bool first = next_table_ == Clock::time_point();
  next_table_ = first || now - next_table_ > interval ? now + interval : next_table_ + interval;
  if (first) slicer_ = usdt::HeatSlicer(wall_time());
  if (first) return {};
  find_in_flight();
  return show_table(false);
}

void Question::name_new_stacks() {
  constexpr int pause_of_work = 4;
  if (!flags_.question.view.has_stacks() || Clock::now() < next_naming_ || !tracer_->table_grew()) return;
  const auto began = own_time();
  if (flags_.question.view.user_stacks) keep_rows_of_ended();
  if (auto rows = tracer_->table()) around_->name(*rows, tracer_->plan());
  next_naming_ = Clock::now() + pause_of_work * (own_time() - began);
}

/// By their names they are few, however many processes there were.
void Question::keep_rows_of_ended() {
  auto rows = tracer_->take_rows_of_ended();
  if (!rows) return;
  around_->name(*rows, tracer_->plan());
  for (usdt::TableRow& row : *rows) {
    usdt::TableRow& whole = ended_[row.keys];
    if (whole.keys.empty()) whole.keys = row.keys;
    whole.add(row);
  }
}

usdt::Result<std::vector<usdt::TableRow>> Question::rows() {
  if (flags_.question.view.user_stacks) keep_rows_of_ended();
  auto rows = tracer_->table();
  if (!rows) return rows;
  if (flags_.question.view.has_stacks()) around_->name(*rows, tracer_->plan());
  for (const auto& [keys, row] : ended_) rows->push_back(row);
  return rows;
}

usdt::Result<void> Question::show_table(bool last) {
  if (flags_.question.view.slowest > 0) {
    for (Sink& sink : sinks_)
      if (sink.is_written()) sink.output().slowest(slowest_, last);
    return {};
  }
  auto rows = this->rows();
  if (!rows) return usdt::fail(rows.error());
  if (flags_.question.view.heat_map) {
    const usdt::HeatSlice slice = slicer_.cut(*plan_->table, *rows, wall_time());
    for (Sink& sink : sinks_)
      if (sink.is_written()) sink.output().heat(slice, last);
    return {};
  }
  if (flags_.question.view.rates) rates_.look(flags_.question.view, *rows, Clock::now(), last);
  const auto overhead = tracer_->overhead();
  const auto arranged =
      usdt::arrange_rows(flags_.question.view, *plan_->table, *rows, flags_.question.view.rates ? &rates_ : nullptr);
  const usdt::ArrangedTable look{.table = *plan_->table, .rows = arranged, .overhead = overhead, .last = last};
  for (Sink& sink : sinks_)
    if (sink.is_written()) sink.output().table(look);
  return {};
}

/// What is kept decides what the kernel leaves out from now on: stacks, which take a while, are for later.
void Question::keep_if_slow(const usdt::Event& event) {
  if (flags_.question.view.in_flight) return;
  if (slowest_.add(event, around_->wall_offset())) tracer_->leave_out_faster(slowest_.least());
}

/// With --in-flight these are what is shown, in the place of the slowest.
void Question::find_in_flight() {
  if (!flags_.question.view.in_flight) return;
  slowest_ = usdt::SlowestEvents(flags_.question.view.slowest);
  for (const usdt::OwnedEvent& open : tracer_->in_flight()) {
    around_->begin(*open);
    slowest_.add(*open, around_->wall_offset());
  }
  name_stacks_of_slowest();
}

/// While their processes live.
void Question::name_stacks_of_slowest() {
  if (flags_.question.stacks.kernel_depth + flags_.question.stacks.user_depth == 0) return;
  for (usdt::KeptEvent& kept : slowest_.events()) {
    if (kept.kernel_stack || kept.user_stack) continue;
    around_->begin(*kept.event);
    const usdt::EventStacks stacks = around_->stacks(flags_.question.stacks, *kept.event);
    if (stacks.kernel) kept.kernel_stack = *stacks.kernel;
    if (stacks.user) kept.user_stack = *stacks.user;
  }
}

/// Who waits for the end of a trace would learn too late that it has no room.
void Question::report_given_up() {
  constexpr std::chrono::seconds pause{1};
  constexpr int pause_of_work = 20;
  if (told_given_up_ || Clock::now() < next_account_ || (!plan_->spans && !usdt::traces_calls(*plan_))) return;
  const auto began = Clock::now();
  const bool first = next_account_ == Clock::time_point();
  std::uint64_t given_up = 0;
  if (!first)
    for (const usdt::ProbeCounts& probe : tracer_->counts()) given_up += probe.given_up;
  next_account_ = Clock::now() + std::max<Clock::duration>(pause, pause_of_work * (Clock::now() - began));
  if (given_up == 0) return;
  told_given_up_ = true;
  tell(
      fmt::format("more {} have begun and not ended than there is room for: the oldest are given up ({} so far), and "
                  "counted as abandoned",
                  plan_->spans ? "spans" : "calls", given_up));
}

void Question::finish_without_trace(std::string_view why) {
  notice(flags_, std::string(why));
  for (const std::string& line : following_.account()) notice(flags_, line);
  // Who reads it gets the account of a trace that saw nothing; of a script, that of the others.
  if (flags_.output.format != Format::json || shown() == nullptr || !flags_.question.name.empty()) return;
  const usdt::AttachPlan nothing;
  usdt::LiveSurroundings around(flags_.question);
  Sink sink = sinks_.front().sibling();
  sink.show_by(line_output(nothing, printed_, flags_, around, sink.stream()));
  sink.output().summary({.probes = {}, .skipped = {}, .missed = 0, .changed = {}});
  sink.flush([this](std::chrono::milliseconds) { return run_.patient(); });
}

void Question::flush() {
  for (Sink& sink : sinks_) sink.flush([this](std::chrono::milliseconds) { return run_.patient(); });
}

usdt::SessionSummary Question::summary() const {
  return {.probes = accounts(),
          .skipped = skipped_sites(*tracer_),
          .missed = tracer_->missed(),
          .changed = tracer_->link().changes(),
          .missed_hits = tracer_->missed_hits(),
          .undecided = tracer_->undecided(),
          .shielded = tracer_->shielded(),
          .overhead = tracer_->overhead()};
}

/// What the tracer counted, less what was not written everywhere.
std::vector<usdt::Account> Question::accounts() const {
  std::vector<usdt::Account> all;
  const usdt::AttachPlan& plan = tracer_->plan();
  const auto forgotten =
      recorder_ != nullptr ? usdt::by_account(plan, recorder_->forgotten()) : std::vector<std::uint64_t>();
  std::vector<std::vector<std::uint64_t>> not_written;
  for (const Sink& sink : sinks_) not_written.push_back(usdt::by_account(plan, sink.output().not_written()));
  for (const usdt::ProbeCounts& counts : tracer_->counts()) {
    usdt::Account& account = all.emplace_back();
    static_cast<usdt::ProbeCounts&>(account) = counts;
    for (const auto& of_sink : not_written)
      account.not_written = std::max(account.not_written, of_sink[all.size() - 1]);
    if (all.size() <= forgotten.size()) {
      account.delivered -= forgotten[all.size() - 1];
      account.discarded += forgotten[all.size() - 1];
    }
    account.delivered -= account.not_written;
  }
  return all;
}

}  // namespace usdt_trace
