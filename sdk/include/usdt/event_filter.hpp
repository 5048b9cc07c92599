// SPDX-License-Identifier: BSD-2-Clause
// Questions about events that exist already, such as those of a Recording: EventFilter answers "is this expression true
// of that event?", EventTable puts events into the rows of a table. Both answer as the kernel does for live hits.
//     auto question = usdt::parse_expression("arg1 > 4KiB");
//     auto filter = usdt::EventFilter::make(std::make_shared<const usdt::Expression>(*question), *recording.plan());
//     if ((*filter)(event) == true) print(event);
// Threads: one at a time for each object. The plan has to live as long as the object.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "usdt/event.hpp"
#include "usdt/expression.hpp"
#include "usdt/plan.hpp"
#include "usdt/result.hpp"
#include "usdt/table.hpp"

namespace usdt {
inline namespace v1 {

/// Tells which events of spans and calls are asked: whole ones, or beginnings without an end (Tracer::in_flight()),
/// which have nothing of an end but how long they have been open.
enum class EventState : std::uint8_t { ended, in_flight };

/// Asks a question of events that exist already, such as those of a Recording. It answers as the kernel would
/// (PlanOptions::where), as far as events have what it asks for. Threads: one at a time.
class EventFilter {
 public:
  /// Makes a filter for events of `plan`, which has to live as long, and may grow. Errors: invalid_argument (no site
  /// has what the question is about, with the reason at one of them; it asks for what no event has).
  [[nodiscard]] static Result<EventFilter> make(const std::shared_ptr<const Expression>& question,
                                                const AttachPlan& plan, EventState state = EventState::ended);
  EventFilter(EventFilter&&) noexcept;
  EventFilter& operator=(EventFilter&&) noexcept;
  ~EventFilter();

  /// Returns whether the expression is true of `event`. Nothing: that is not known, since something it asks for was not
  /// read, or a text was cut before the end of what it is compared with, or the question cannot be asked at that site
  /// (refusal()).
  [[nodiscard]] std::optional<bool> operator()(const Event& event);
  /// Returns the reason why the question cannot be asked of events of a site; empty: it can.
  [[nodiscard]] std::string_view refusal(Index<PlannedSite> site);

 private:
  struct Impl;
  explicit EventFilter(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Makes the table of PlanOptions::table of events that exist already: the rows that programs in the kernel would have
/// made of their hits, as far as an event has what is asked for. Threads: one at a time.
class EventTable {
 public:
  /// Makes an empty table for events of `plan`, which has to live as long, and may grow. `where`: a question that tells
  /// which events count; null: all do. Keys and value have the types that they have at the first site (of `probes`, if
  /// any are given) that has what is asked for. Errors: as EventFilter::make(); limit (more bytes of keys than
  /// TableQuestion::key_bytes).
  [[nodiscard]] static Result<EventTable> make(const Expression* where, const TableQuestion& table,
                                               const AttachPlan& plan,
                                               const std::vector<Index<PlannedProbe>>& probes = {},
                                               EventState state = EventState::ended);
  EventTable(EventTable&&) noexcept;
  EventTable& operator=(EventTable&&) noexcept;
  ~EventTable();

  /// Adds an event to its row, and returns what became of it: `undecided` at a site with a refusal(). `stacks`: the
  /// event's stacks, if they are among the keys, as Recording or Symbolizer has them.
  TableBuilder::Added add(const Event& event, const EventStacks& stacks = {});
  /// Returns the reason why events of a site are in no row; empty: they may be in one.
  [[nodiscard]] std::string_view refusal(Index<PlannedSite> site);
  /// Returns the columns of the table: its keys and its value.
  [[nodiscard]] const PlannedTable& table() const noexcept;
  /// Returns the rows by now, in the order of their keys, as Tracer::table() does.
  [[nodiscard]] std::vector<TableRow> rows() const;

 private:
  struct Impl;
  explicit EventTable(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
