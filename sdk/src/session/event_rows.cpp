// SPDX-License-Identifier: BSD-2-Clause
#include "session/event_rows.hpp"

#include <utility>

#include "base/try.hpp"
#include "session/option_names.hpp"

namespace usdt::session {

Result<EventRows> EventRows::make(const Question& question, const AttachPlan& plan,
                                  const std::vector<Index<PlannedProbe>>& probes) {
  const TableQuestion& asked = *question.view.question;
  const EventState state = question.view.in_flight ? EventState::in_flight : EventState::ended;
  const Expression* where = question.view.of_events ? nullptr : question.where.get();  // the kernel has asked it
  auto sums = TRY(EventTable::make(where, asked, plan, probes, state));
  if (!question.view.variance) return EventRows(std::move(sums), std::nullopt);
  TableQuestion of_variance = asked;
  of_variance.value = *question.view.variance;
  auto variances = EventTable::make(where, of_variance, plan, probes, state);
  if (!variances) return fail(variances.error().within(name_options("--variance", question.option_prefix)));
  return EventRows(std::move(sums), std::move(*variances));
}

Result<std::optional<EventFilter>> filter_in_flight(const Question& question, const AttachPlan& plan) {
  if (!question.where) return std::optional<EventFilter>();
  auto filter = EventFilter::make(question.where, plan, EventState::in_flight);
  if (!filter) return fail(filter.error().within(name_options("--where", question.option_prefix)));
  return std::optional(std::move(*filter));
}

Result<void> check_rows(const Question& question, const AttachPlan& plan) {
  if (question.view.makes_rows()) {
    TRY(EventRows::make(question, plan));
    return {};
  }
  if (!question.view.in_flight) return {};
  TRY(filter_in_flight(question, plan));
  return {};
}

TableBuilder::Added EventRows::add(const Event& event, const EventStacks& stacks) {
  using Added = TableBuilder::Added;
  if (variances_) {
    if (const Added added = variances_->add(event, stacks); added != Added::row) return added;
  }
  return sums_.add(event, stacks);
}

std::vector<TableRow> EventRows::rows() const {
  std::vector<TableRow> rows = sums_.rows();
  if (!variances_) return rows;
  const auto type = variances_->table().value;
  const bool reals = type == ExpressionType::real32 || type == ExpressionType::real64;
  const std::vector<TableRow> variances = variances_->rows();
  for (std::size_t n = 0; n < rows.size(); ++n)  // of equal keys, by whose order both are
    rows[n].variance = reals ? variances[n].real_sum.value() : static_cast<double>(variances[n].sum);
  return rows;
}

}  // namespace usdt::session
