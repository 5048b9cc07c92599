// SPDX-License-Identifier: BSD-2-Clause
#include "session/live_view.hpp"

#include <ctime>

#include "base/try.hpp"
#include "session/growing_plan.hpp"

namespace usdt::session {
namespace {

/// Returns the processor time of this thread.
std::chrono::nanoseconds own_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

/// Rows of events (View::of_events), and what became of those that are in none, by the probes whose accounts have them.
struct LiveView::OfEvents {
  struct LeftOut {
    std::uint64_t undecided = 0, table_full = 0;
  };

  explicit OfEvents(const Tracer& tracer) : plan(tracer) {}

  GrowingPlan plan;
  std::optional<EventRows> rows = {};
  std::vector<LeftOut> left_out = {};
};

LiveView::LiveView(const Question& question, const PlannedTable* table, Tracer& tracer, LiveSurroundings& around,
                   AnswerConsumer& consumer)
    : question_(question), table_(table), tracer_(tracer), around_(around), consumer_(consumer) {
  rates_.begin(Clock::now());
}

LiveView::~LiveView() = default;

/// Begins the table of events. The planner has looked whether it can be made.
Result<void> LiveView::begin_rows() {
  if (!view_.of_events) return {};
  of_events_ = std::make_unique<OfEvents>(tracer_);
  auto rows = TRY(EventRows::make(question_, of_events_->plan.plan()));
  of_events_->rows.emplace(std::move(rows));
  return {};
}

void LiveView::add(const Event& event) {
  OfEvents& made = *of_events_;
  made.plan.grow();
  const std::uint32_t probe = account_of(made.plan.plan(), event.site().probe.value);
  if (made.left_out.size() <= probe) made.left_out.resize(made.plan.plan().probes.size());
  const auto added =
      made.rows->add(event, view_.has_stacks() ? around_.stacks(question_.stacks, event) : EventStacks());
  made.left_out[probe].undecided += added == TableBuilder::Added::undecided ? 1 : 0;
  made.left_out[probe].table_full += added == TableBuilder::Added::table_full ? 1 : 0;
}

void LiveView::account_for(Index<PlannedProbe> probe, Account& account) const {
  if (!of_events_ || probe.value >= of_events_->left_out.size()) return;
  const OfEvents::LeftOut& left_out = of_events_->left_out[probe.value];
  account.undecided += left_out.undecided;
  account.table_full += left_out.table_full;
  account.delivered -= left_out.undecided + left_out.table_full;
}

/// Keeps an event if it is among the slowest; the kernel leaves out faster ones from now on. Its stacks are named
/// later, which takes a while.
void LiveView::keep_if_slow(const Event& event) {
  if (slowest_.add(event, around_.wall_offset())) tracer_.leave_out_faster(slowest_.least());
}

void LiveView::name_stacks_of_slowest() {
  if (question_.stacks.kernel_depth + question_.stacks.user_depth == 0) return;
  for (KeptEvent& kept : slowest_.events()) {
    if (kept.kernel_stack || kept.user_stack) continue;
    around_.begin(*kept.event);
    const EventStacks stacks = around_.stacks(question_.stacks, *kept.event);
    if (stacks.kernel) kept.kernel_stack = *stacks.kernel;
    if (stacks.user) kept.user_stack = *stacks.user;
  }
}

void LiveView::name_new_stacks() {
  constexpr int pause_of_work = 4;
  if (!view_.has_stacks() || Clock::now() < next_naming_ || !tracer_.table_grew()) return;
  const auto began = own_time();
  if (view_.user_stacks) keep_rows_of_ended();
  if (auto rows = tracer_.table()) around_.name(*rows, tracer_.plan());
  next_naming_ = Clock::now() + pause_of_work * (own_time() - began);
}

Result<void> LiveView::find_in_flight() {
  if (!view_.in_flight) return {};
  if (view_.question) return add_up_in_flight();
  auto where = TRY(filter_in_flight(question_, tracer_.plan()));
  slowest_ = SlowestEvents(view_.slowest);
  for (const OwnedEvent& open : tracer_.in_flight()) {
    if (where && !(*where)(*open).value_or(false)) continue;
    around_.begin(*open);
    slowest_.add(*open, around_.wall_offset());
  }
  name_stacks_of_slowest();
  return {};
}

/// Makes the table of what is in flight now. Nothing of an earlier look is in it.
Result<void> LiveView::add_up_in_flight() {
  auto rows = TRY(EventRows::make(question_, tracer_.plan()));
  for (const OwnedEvent& open : tracer_.in_flight()) {
    around_.begin(*open);
    rows.add(*open, view_.has_stacks() ? around_.stacks(question_.stacks, *open) : EventStacks());
  }
  in_flight_.emplace(std::move(rows));
  return {};
}

void LiveView::show_in_flight(bool last) {
  if (last) growth_.begin_at_first();
  const auto arranged = arrange_rows(view_, in_flight_->table(), in_flight_->rows(), nullptr, &growth_);
  consumer_.table({.table = in_flight_->table(), .rows = arranged, .overhead = tracer_.overhead(), .last = last});
  growth_.keep(arranged);
}

Result<void> LiveView::show_when_due() {
  const auto now = Clock::now();
  if (!view_.interval || now < next_look_) return {};
  const auto interval = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*view_.interval));
  const bool first = next_look_ == Clock::time_point();
  next_look_ = first || now - next_look_ > interval ? now + interval : next_look_ + interval;
  if (first) {
    slicer_ = HeatSlicer(wall_time());
    return {};
  }
  TRY(find_in_flight());
  return show(false);
}

Result<void> LiveView::show_when_wanted() {
  constexpr int pause_of_work = 9;
  if (table() == nullptr || view_.heat_map || Clock::now() < next_wanted_ || !consumer_.wants_table()) return {};
  const auto began = own_time();
  const auto rows = TRY(this->rows());
  const auto overhead = tracer_.overhead();
  const auto arranged = arrange_rows(view_, *table(), rows);
  consumer_.look({.table = *table(), .rows = arranged, .overhead = overhead, .last = false});
  next_wanted_ = Clock::now() + pause_of_work * (own_time() - began);
  return {};
}

Result<void> LiveView::show(bool last) {
  if (view_.slowest > 0) {
    consumer_.slowest(slowest_, last);
    return {};
  }
  if (in_flight_) show_in_flight(last);
  if (table() == nullptr) return {};
  auto rows = TRY(this->rows());
  if (view_.heat_map) {
    consumer_.heat(slicer_.cut(*table(), rows, wall_time()), last);
    return {};
  }
  if (view_.rates) rates_.look(view_, rows, Clock::now(), last);
  const auto overhead = tracer_.overhead();
  const auto arranged = arrange_rows(view_, *table(), rows, view_.rates ? &rates_ : nullptr);
  consumer_.table({.table = *table(), .rows = arranged, .overhead = overhead, .last = last});
  return {};
}

const PlannedTable* LiveView::table() const { return of_events_ ? &of_events_->rows->table() : table_; }

Result<std::vector<TableRow>> LiveView::rows() {
  if (of_events_) return of_events_->rows->rows();
  if (view_.user_stacks) keep_rows_of_ended();
  auto rows = tracer_.table();
  if (!rows) return rows;
  if (view_.has_stacks()) around_.name(*rows, tracer_.plan());
  for (const auto& [keys, row] : ended_) rows->push_back(row);
  return rows;
}

/// By their names they are few, however many processes there were.
void LiveView::keep_rows_of_ended() {
  auto rows = tracer_.take_rows_of_ended();
  if (!rows) return;
  around_.name(*rows, tracer_.plan());
  for (TableRow& row : *rows) {
    TableRow& whole = ended_[row.keys];
    if (whole.keys.empty()) whole.keys = row.keys;
    whole.add(row);
  }
}

}  // namespace usdt::session
