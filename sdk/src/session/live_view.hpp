// SPDX-License-Identifier: BSD-2-Clause
// Views that a live trace shows in place of each event: rows of a table, slices of a heat map, the slowest.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "session/event_rows.hpp"
#include "session/live_run.hpp"
#include "usdt/account.hpp"
#include "usdt/answers.hpp"
#include "usdt/slowest.hpp"
#include "usdt/surroundings.hpp"
#include "usdt/table.hpp"
#include "usdt/tracer.hpp"
#include "usdt/view.hpp"

namespace usdt::session {

/// Looks at a table, and keeps the slowest. All that it is made of lives longer.
class LiveView {
 public:
  LiveView(const Question& question, const PlannedTable* table, Tracer& tracer, LiveSurroundings& around,
           AnswerConsumer& consumer);
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;
  ~LiveView();

  /// Keeps an event if it is among the slowest. It is the one that the surroundings were asked about last.
  void keep_if_slow(const Event& event);
  /// Begins the table that is made of events. Errors: those of EventTable::make().
  [[nodiscard]] Result<void> begin_rows();
  /// Adds an event to the table (View::of_events). It is the one that the surroundings were asked about last.
  void add(const Event& event);
  /// Takes those of a probe that are in no row out of what was delivered.
  void account_for(Index<PlannedProbe> probe, Account& account) const;
  /// Names the stacks of what is kept, while the processes live.
  void name_stacks_of_slowest();
  /// Names the stacks of rows while their processes live; where there are many rows, not all the time.
  void name_new_stacks();
  /// Keeps the calls that are open now, in place of the slowest or as a table (View::in_flight). Errors: those of
  /// EventFilter::make() and EventTable::make().
  [[nodiscard]] Result<void> find_in_flight();
  /// Shows what there is so far when it is time (View::interval). Missed looks do not delay the next one. Errors: those
  /// of Tracer::table().
  [[nodiscard]] Result<void> show_when_due();
  /// Shows the rows by now to who wants them, unless looks take too much time. Errors: those of Tracer::table().
  [[nodiscard]] Result<void> show_when_wanted();
  /// Shows what there is at the end.
  [[nodiscard]] Result<void> show_last() { return show(true); }

 private:
  [[nodiscard]] Result<void> show(bool last);
  [[nodiscard]] Result<void> add_up_in_flight();
  void show_in_flight(bool last);
  /// What the rows are of, the kernel's or those of events; null: there are none.
  [[nodiscard]] const PlannedTable* table() const;
  /// The tracer's rows, and those of processes that have ended.
  [[nodiscard]] Result<std::vector<TableRow>> rows();
  void keep_rows_of_ended();

  const Question& question_;
  const View& view_ = question_.view;
  const PlannedTable* table_;
  Tracer& tracer_;
  LiveSurroundings& around_;
  AnswerConsumer& consumer_;
  Clock::time_point next_look_ = {};
  Clock::time_point next_naming_ = {};
  Clock::time_point next_wanted_ = {};                    ///< before that, no look that somebody wants
  std::map<std::vector<TableKey>, TableRow> ended_ = {};  ///< rows of processes that have ended
  HeatSlicer slicer_{0};
  HitRates rates_ = {};
  SlowestEvents slowest_{question_.view.slowest};
  std::optional<EventRows> in_flight_ = {};  ///< at the last look
  struct OfEvents;
  std::unique_ptr<OfEvents> of_events_;
  RowGrowth growth_ = {};
};

}  // namespace usdt::session
