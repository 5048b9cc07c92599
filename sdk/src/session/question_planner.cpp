// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/try.hpp"
#include "expr/asked_fields.hpp"
#include "expr/attributes.hpp"
#include "session/check_printed.hpp"
#include "session/event_rows.hpp"
#include "session/find_points.hpp"
#include "session/option_names.hpp"
#include "session/split_condition.hpp"
#include "session/wanted_values.hpp"
#include "usdt/features.hpp"
#include "usdt/privilege.hpp"
#include "usdt/question_plan.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// Whether anything that is shown or asked of events is known by `source`.
bool wants(const Question& question, HitFieldSource source) {
  std::vector<const Expression*> asked = session::expressions_of_rows(question);
  if (question.recording.dump_on) asked.push_back(question.recording.dump_on.get());
  return std::ranges::any_of(kHitFields, [&](const HitFieldInfo& each) {
    return each.source == source &&
           (question.values.print.has_word(each.field) ||
            std::ranges::any_of(asked, [&](const Expression* of) { return expr::may_ask(*of, each.field); }));
  });
}

bool asks_attributes(const Question& question) {
  const Expression* dump_on = question.recording.dump_on.get();
  return session::asks_events(question) || (dump_on != nullptr && expr::asks_attribute(*dump_on));
}

Result<PlanOptions> plan_options(const Question& question, const Subjects& subjects) {
  PlanOptions options;
  if (!subjects.pids.empty() && !question.processes.children) {
    auto processes = TRY(Processes::of(subjects.pids));
    options.scope = std::move(processes);
  }
  options.allow_unsafe_nop5 = question.attaching.allow_unsafe_nop5;
  options.kernel_backend = question.attaching.kernel_backend;
  options.owners = question.values.containers || wants(question, HitFieldSource::owner);
  options.contexts = question.values.trace_context || wants(question, HitFieldSource::context);
  options.attributes =
      question.values.trace_attributes || question.values.print.has_attribute() || asks_attributes(question);
  if (!question.view.in_flight) options.where = session::split_condition(question.where).of_hits;
  options.table = question.view.question_of_hits();
  return options;
}

/// Adds the values there are to an error about one that there is not.
Error with_values_of(const AttachPlan& plan, Error error) {
  const Printed all{.lists = {}, .of_probe = std::vector<ListNumber>(plan.probes.size())};
  error.message = fmt::format("{}: {}", error.message, session::what_there_is(plan, all, 0));
  return error;
}

/// Adds the values there are to an error about --where or a table.
template <class Plan>
Error explained(Error error, const Plan& plan, PlanOptions options, std::string_view prefix) {
  if (error.kind != ErrorKind::invalid_argument || (!options.where && !options.table)) return error;
  const std::string about = options.table ? "" : session::name_options("--where ", prefix);
  options.where = nullptr;
  options.table = nullptr;
  const auto without = plan(options);
  if (!without) return error;  // it is not about that
  error.message = about + error.message;
  return with_values_of(*without, std::move(error));
}

/// Says whether lists that nothing was printed by before name what is there.
Result<void> check_new_lists(const Question& question, const PlannedQuestion& planned, const Printed& before) {
  for (ListNumber number = 1; number < planned.printed.lists.size(); ++number) {
    if (!session::is_used(planned.printed, number) || session::is_used(before, number)) continue;
    TRY(session::check_list(question, planned.plan, planned.printed, number));
  }
  return {};
}

/// Whether probes may come that print lists are for: a file that is named has its probes, or is waited for.
bool may_come(const Question& question) {
  return question.following.follow &&
         (question.following.wait || std::ranges::any_of(question.points.patterns, looks_everywhere));
}

}  // namespace

QuestionPlanner::QuestionPlanner(Question question, Subjects subjects, Purpose purpose)
    : question_(std::move(question)), subjects_(std::move(subjects)), purpose_(purpose) {}

std::vector<SessionNotice> QuestionPlanner::take_notices() { return std::exchange(notices_, {}); }

KernelFacts QuestionPlanner::kernel() const {
  KernelFacts kernel = kernel_facts(all_patterns(question_), question_.attaching.kernel_backend);
  const bool another = question_.attaching.backend != Backend::automatic;
  // Sessions are everybody's, or one process's: a command's and its children's calls have two programs.
  const bool family =
      question_.processes.children || (!question_.processes.command.empty() && question_.following.follow);
  if (another || family) kernel.abilities.uprobe_session = false;
  return kernel;
}

Result<Selection> QuestionPlanner::select(const std::vector<PointPattern>& patterns, const SearchScope& scope) {
  auto selection = usdt::select(patterns, scope);
  if (!selection) return fail(session::with_hint_at_started(std::move(selection.error()), question_, patterns));
  session::report_selection(question_, patterns, *selection, notices_);
  return selection;
}

Result<FoundPoints> QuestionPlanner::find() {
  FoundPoints found{.scope = session::search_scope(question_, subjects_)};
  TRY(session::check_cgroups(question_, subjects_, found.scope));
  auto selection = TRY(select(question_.points.patterns, found.scope));
  found.selection = std::move(selection);
  if (question_.points.ends.empty()) return found;
  auto ends = TRY(select(question_.points.ends, found.scope));
  found.ends = std::move(ends);
  return found;
}

FoundPoints QuestionPlanner::find_beginning() const {
  FoundPoints found{.scope = session::search_scope(question_, subjects_)};
  if (question_.points.ends.empty()) return found;
  found.ends.emplace();
  if (!session::check_cgroups(question_, subjects_, found.scope)) return found;
  if (auto begins = usdt::select(question_.points.patterns, found.scope)) found.selection = std::move(*begins);
  if (auto ends = usdt::select(question_.points.ends, found.scope)) found.ends = std::move(*ends);
  return found;
}

void QuestionPlanner::add_file(ProbeFile file, FoundPoints& found) const {
  const auto add = [](ProbeFile side, Selection& selection) {
    if (!side.sites.empty() || !side.functions.empty()) selection.files.push_back(std::move(side));
  };
  if (!found.ends) return add(std::move(file), found.selection);
  add(session::side_of(question_.points.patterns, file), found.selection);
  add(session::side_of(question_.points.ends, std::move(file)), *found.ends);
}

/// `before`: what is traced already, whose table gets the rows.
Result<PlannedQuestion> QuestionPlanner::plan_selection(const FoundPoints& found, const AttachPlan* before) const {
  auto options = TRY(plan_options(question_, subjects_));
  if (before != nullptr && before->table) options.rows = std::make_shared<const PlannedTable>(*before->table);
  const PrintChoice choice(question_.values.print, found.scope);
  const session::WantedValues wanted = session::wanted_by(choice, question_);
  session::choose_values(wanted, choice, options);
  const KernelFacts facts = kernel();
  const auto plan_with = [&](const PlanOptions& how) {
    return found.ends ? plan_spans(found.selection, *found.ends, facts, how, question_.points.pairing)
                      : plan_attach(found.selection, facts, how);
  };
  auto plan = plan_with(options);
  if (!plan) {
    // A kernel that hides its features for want of privilege looks like one that lacks them, unless somebody who may
    // ask it has told what they are.
    const bool told = !FeatureScope::current().known.empty();
    if (plan.error().kind == ErrorKind::not_supported && purpose_ == Purpose::trace && !told) TRY(check_privilege());
    return fail(explained(plan.error(), plan_with, options, question_.option_prefix));
  }
  TRY(check_durations(question_, *plan));
  if (auto asked = session::check_rows(question_, *plan); !asked)
    return fail(with_values_of(*plan, std::move(asked.error())));
  PlannedQuestion planned{std::move(*plan), {}};
  for (ListNumber i = 0; i < choice.count(); ++i) planned.printed.lists.push_back(choice.list(i));
  for (const PlannedProbe& probe : planned.plan.probes)
    planned.printed.of_probe.push_back(choice.of(planned.plan, probe));
  return planned;
}

Result<PlannedQuestion> QuestionPlanner::plan(const FoundPoints& found) {
  auto planned = plan_selection(found, nullptr);
  if (!planned) return planned;
  const bool others_come = purpose_ == Purpose::trace && may_come(question_);
  TRY(check_printed(question_, planned->plan, planned->printed, others_come, notices_));
  return planned;
}

Result<PlannedQuestion> QuestionPlanner::plan() {
  auto found = find();
  return found ? plan(*found) : fail(found.error());
}

Result<PlannedQuestion> QuestionPlanner::plan_what_came(const FoundPoints& found, const TracedSoFar* before) {
  auto planned = plan_selection(found, before ? &before->plan : nullptr);
  if (!planned) return planned;
  TRY(check_new_lists(question_, *planned, before ? before->printed : Printed()));
  return planned;
}

Result<PlannedQuestion> QuestionPlanner::plan_first(const FoundPoints& found) { return plan_what_came(found, nullptr); }

Result<PlannedQuestion> QuestionPlanner::plan_more(ProbeFile file, const TracedSoFar& before) {
  FoundPoints found{.scope = session::search_scope(question_, subjects_)};
  if (!question_.points.ends.empty()) found.ends.emplace();
  add_file(std::move(file), found);
  if (found.lacks_something())
    return fail(ErrorKind::not_supported,
                fmt::format("spans only {} in it: of what comes, they have both ends in one file",
                            found.selection.files.empty() ? "end" : "begin"));
  return plan_what_came(found, &before);
}

bool SessionNotice::is_of_trace() const noexcept {
  switch (kind) {
    case Kind::attached:
    case Kind::others_pay:
    case Kind::followed:
    case Kind::released:
    case Kind::changed:
    case Kind::moved_code:
    case Kind::given_up:
    case Kind::interpreter:
    case Kind::cgroup:
      return true;
    case Kind::unmatched:
    case Kind::copies:
    case Kind::file:
    case Kind::missing:
    case Kind::missing_process:
    case Kind::left_out:
    case Kind::incomplete:
    case Kind::shortened:
    case Kind::unused_print:
    case Kind::recording:
    case Kind::waiting:
    case Kind::following:
    case Kind::scope:
    case Kind::detaching:
    case Kind::ended:
      return false;
  }
  return false;
}

}  // namespace v1
}  // namespace usdt
