// SPDX-License-Identifier: BSD-2-Clause
// The table that a question asks of events that exist already, with what the kernel does not add up: the error of sums.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "usdt/event_filter.hpp"
#include "usdt/question.hpp"

namespace usdt::session {

/// Adds up events by Question::view. As EventTable, whose table it is; each row has its variance, too (View::variance).
class EventRows {
 public:
  /// Makes an empty table for events of `plan`, which lives as long. Errors: those of EventTable::make().
  [[nodiscard]] static Result<EventRows> make(const Question& question, const AttachPlan& plan,
                                              const std::vector<Index<PlannedProbe>>& probes = {});

  /// Adds an event, which is in a row only if all is known that is asked of it.
  TableBuilder::Added add(const Event& event, const EventStacks& stacks = {});
  [[nodiscard]] std::string_view refusal(Index<PlannedSite> site) { return sums_.refusal(site); }
  [[nodiscard]] const PlannedTable& table() const noexcept { return sums_.table(); }
  [[nodiscard]] std::vector<TableRow> rows() const;

 private:
  EventRows(EventTable sums, std::optional<EventTable> variances)
      : sums_(std::move(sums)), variances_(std::move(variances)) {}

  EventTable sums_;
  std::optional<EventTable> variances_;  ///< with equal rows, whose sums these are
};

/// Makes what tells which beginnings are shown; nothing: all of them. Errors: those of EventFilter::make().
[[nodiscard]] Result<std::optional<EventFilter>> filter_in_flight(const Question& question, const AttachPlan& plan);
/// Checks what beginnings, and events that rows are made of, are asked before there are any. Errors: those of
/// EventRows::make() and filter_in_flight().
[[nodiscard]] Result<void> check_rows(const Question& question, const AttachPlan& plan);

}  // namespace usdt::session
