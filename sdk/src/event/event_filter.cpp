// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/event_filter.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/try.hpp"
#include "event/event_question.hpp"
#include "expr/row.hpp"

namespace usdt {
inline namespace v1 {

struct EventFilter::Impl {
  event::EventQuestion question;
};

EventFilter::EventFilter(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
EventFilter::EventFilter(EventFilter&&) noexcept = default;
EventFilter& EventFilter::operator=(EventFilter&&) noexcept = default;
EventFilter::~EventFilter() = default;

Result<EventFilter> EventFilter::make(const std::shared_ptr<const Expression>& question, const AttachPlan& plan,
                                      EventState state) {
  if (!question) return fail(ErrorKind::invalid_argument, "no question to ask");
  EventFilter filter(std::make_unique<Impl>(Impl{event::EventQuestion(*question, plan, state)}));
  TRY(filter.impl_->question.check());
  return filter;
}

std::optional<bool> EventFilter::operator()(const Event& event) {
  const auto& asked = impl_->question.at(Index<PlannedSite>(event.site_number()));
  if (!asked.typed) return std::nullopt;
  const auto answer = evaluate(*asked.typed, event::EventFacts(event));
  return answer ? std::optional(*answer != 0) : std::nullopt;
}

std::string_view EventFilter::refusal(Index<PlannedSite> site) { return impl_->question.at(site).refusal; }

struct EventTable::Impl {
  Impl(const Expression* where, const TableQuestion& what, const AttachPlan& p, EventState state)
      : plan(p), question(expr::row_of(where, what), p, state), wanted(what) {}

  /// The question about the events of a site. `refusal` says why they are in no row; empty: they may be.
  struct Asked {
    std::optional<TypedExpression> typed = {};
    std::string refusal = {};
  };
  const Asked& at(Index<PlannedSite> site) {
    const event::EventQuestion::Asked& made = question.at(site);
    const auto [known, is_new] = asked.try_emplace(&made);
    if (!is_new) return known->second;
    if (!made.typed) {
      known->second.refusal = made.refusal;
      return known->second;
    }
    const auto planned = expr::planned_table(*made.typed, plan.args[plan.sites[site].args], wanted);
    known->second.refusal = planned ? expr::why_other_rows(table, *planned) : planned.error().message;
    if (known->second.refusal.empty()) known->second.typed = made.typed->with_signs_of(table);
    return known->second;
  }

  const AttachPlan& plan;
  event::EventQuestion question;
  TableQuestion wanted;
  std::optional<TableBuilder> rows;
  PlannedTable table;
  std::map<const event::EventQuestion::Asked*, Asked> asked;
};

EventTable::EventTable(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
EventTable::EventTable(EventTable&&) noexcept = default;
EventTable& EventTable::operator=(EventTable&&) noexcept = default;
EventTable::~EventTable() = default;

Result<EventTable> EventTable::make(const Expression* where, const TableQuestion& table, const AttachPlan& plan,
                                    const std::vector<Index<PlannedProbe>>& probes, EventState state) {
  auto impl = std::make_unique<Impl>(where, table, plan, state);
  TRY(impl->question.check());
  bool found = false;
  for (const Index<PlannedSite> site : plan.sites.indices()) {
    if (!impl->question.has_events(site)) continue;
    if (!probes.empty() && std::ranges::find(probes, plan.sites[site].probe) == probes.end()) continue;
    const auto& typed = impl->question.at(site).typed;
    if (!typed) continue;
    auto planned = TRY(expr::planned_table(*typed, plan.args[plan.sites[site].args], table));
    if (found && !expr::why_other_rows(impl->table, planned).empty()) continue;
    found ? expr::join_signs(impl->table, planned) : static_cast<void>(impl->table = std::move(planned));
    found = true;
  }
  impl->rows.emplace(impl->table);
  return EventTable(std::move(impl));
}

TableBuilder::Added EventTable::add(const Event& event, const EventStacks& stacks) {
  const auto& asked = impl_->at(Index<PlannedSite>(event.site_number()));
  if (!asked.refusal.empty()) return TableBuilder::Added::undecided;
  return impl_->rows->add(*asked.typed, event::EventFacts(event, stacks), event.weight());
}

std::string_view EventTable::refusal(Index<PlannedSite> site) { return impl_->at(site).refusal; }

const PlannedTable& EventTable::table() const noexcept { return impl_->table; }
std::vector<TableRow> EventTable::rows() const { return impl_->rows->rows(); }

}  // namespace v1
}  // namespace usdt
