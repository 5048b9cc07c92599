// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/event_filter.hpp"

#include <algorithm>
#include <utility>

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

Result<EventFilter> EventFilter::make(std::shared_ptr<const Expression> question, const AttachPlan& plan) {
  if (!question) return fail(ErrorKind::invalid_argument, "no question to ask");
  EventFilter filter(std::make_unique<Impl>(Impl{event::EventQuestion(*question, plan)}));
  if (auto sense = filter.impl_->question.check(); !sense) return fail(sense.error());
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
  Impl(Expression asked, const AttachPlan& plan) : question(std::move(asked), plan) {}

  event::EventQuestion question;
  std::optional<TableBuilder> rows;
  PlannedTable table;
};

EventTable::EventTable(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
EventTable::EventTable(EventTable&&) noexcept = default;
EventTable& EventTable::operator=(EventTable&&) noexcept = default;
EventTable::~EventTable() = default;

Result<EventTable> EventTable::make(const Expression* where, const TableQuestion& table, const AttachPlan& plan,
                                    const std::vector<Index<PlannedProbe>>& probes) {
  auto impl = std::make_unique<Impl>(expr::row_of(where, table), plan);
  if (auto sense = impl->question.check(); !sense) return fail(sense.error());
  for (const Index<PlannedSite> site : plan.sites.indices()) {
    if (plan.spans && !plan.sites[site].span) continue;
    if (!probes.empty() && std::ranges::find(probes, plan.sites[site].probe) == probes.end()) continue;
    const auto& typed = impl->question.at(site).typed;
    if (!typed) continue;
    auto planned = expr::planned_table(*typed, plan.args[plan.sites[site].args], table);
    if (!planned) return fail(planned.error());
    impl->table = std::move(*planned);
    break;
  }
  impl->rows.emplace(impl->table);
  return EventTable(std::move(impl));
}

TableBuilder::Added EventTable::add(const Event& event, const EventStacks& stacks) {
  const auto& asked = impl_->question.at(Index<PlannedSite>(event.site_number()));
  if (!asked.typed || !expr::same_rows(asked.typed->root(), impl_->table)) return TableBuilder::Added::undecided;
  return impl_->rows->add(*asked.typed, event::EventFacts(event, stacks), event.weight());
}

std::string_view EventTable::refusal(Index<PlannedSite> site) {
  const auto& asked = impl_->question.at(site);
  if (!asked.typed) return asked.refusal;
  return expr::same_rows(asked.typed->root(), impl_->table)
             ? std::string_view()
             : "a key or the value is of another type than at the sites before";
}

const PlannedTable& EventTable::table() const noexcept { return impl_->table; }
std::vector<TableRow> EventTable::rows() const { return impl_->rows->rows(); }

}  // namespace v1
}  // namespace usdt
