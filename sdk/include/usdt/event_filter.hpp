// SPDX-License-Identifier: BSD-2-Clause
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

/// A question that is asked of events which are there already, such as those of a Recording. It has the same answers as
/// in the kernel (PlanOptions::where), as far as events have what it asks for. Threads: one at a time.
class EventFilter {
 public:
  /// Of events of `plan`, which lives as long, and of those it grows to. Errors: invalid_argument (no site has what it
  /// is about, with the reason at one of them; it asks for what no event has).
  [[nodiscard]] static Result<EventFilter> make(const std::shared_ptr<const Expression>& question,
                                                const AttachPlan& plan);
  EventFilter(EventFilter&&) noexcept;
  EventFilter& operator=(EventFilter&&) noexcept;
  ~EventFilter();

  /// Whether the expression is true of `event`. Nothing: that is not known, since something it asks for was not read,
  /// or a text was cut before the end of what it is compared with, or the question cannot be asked at that site
  /// (refusal()).
  [[nodiscard]] std::optional<bool> operator()(const Event& event);
  /// Why it cannot be asked of events of a site; empty: it can.
  [[nodiscard]] std::string_view refusal(Index<PlannedSite> site);

 private:
  struct Impl;
  explicit EventFilter(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// PlanOptions::table of events that are there already: the rows that programs would have made of their hits, as far as
/// an event has what is asked for. One thread at a time.
class EventTable {
 public:
  /// Of events of `plan`, which lives as long, and may grow; `where` null: all of them. The types of keys and of the
  /// value are those at the first site that has what is asked for; where `probes` are given, of these. Errors: as
  /// EventFilter::make(), limit (more bytes of keys than TableQuestion::kMostKeyBytes).
  [[nodiscard]] static Result<EventTable> make(const Expression* where, const TableQuestion& table,
                                               const AttachPlan& plan,
                                               const std::vector<Index<PlannedProbe>>& probes = {});
  EventTable(EventTable&&) noexcept;
  EventTable& operator=(EventTable&&) noexcept;
  ~EventTable();

  /// Adds an event to its row; `stacks` where they are among the keys, as Recording or Symbolizer has them.
  TableBuilder::Added add(const Event& event, const EventStacks& stacks = {});
  /// Why events of a site are in no row; empty: they may be.
  [[nodiscard]] std::string_view refusal(Index<PlannedSite> site);
  /// What the keys of the rows are.
  [[nodiscard]] const PlannedTable& table() const noexcept;
  /// As Tracer::table().
  [[nodiscard]] std::vector<TableRow> rows() const;

 private:
  struct Impl;
  explicit EventTable(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace usdt
