// SPDX-License-Identifier: BSD-2-Clause
#include "usdt/explanation.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/try.hpp"
#include "session/explained_sites.hpp"
#include "session/site_costs.hpp"
#include "usdt/bpf_object.hpp"
#include "usdt/carrier.hpp"
#include "usdt/features.hpp"
#include "usdt/privilege.hpp"
#include "usdt/tracer.hpp"

namespace usdt {
inline namespace v1 {
namespace {

/// Counts links, programs and sites of each backend.
Result<std::vector<ExplainedLinks>> links_of(const Question& question, const AttachPlan& plan,
                                             const CarrierPlan& carriers, bool family) {
  std::map<Backend, ExplainedLinks> by_backend;
  std::map<Backend, std::set<std::uint32_t>> programs;
  for (const PlannedLink& link : carriers.links) {
    Backend backend = plan.groups[link.group].backend;
    if (backend == Backend::automatic && family) {
      backend = Backend::uprobe_family;
    } else if (backend == Backend::automatic) {
      backend = TRY(choose_backend(question.attaching.backend));
    }
    ExplainedLinks& links = by_backend[backend];
    links.backend = backend;
    links.sites += link.sites.size();
    links.links += backend_info(backend).one_link ? 1 : link.sites.size();
    programs[backend].insert(link.program.value);
    const bool of_one_point = backend_info(backend).tied == TiedTo::point;
    links.programs = of_one_point ? links.sites : programs[backend].size();
  }
  std::vector<ExplainedLinks> all;
  for (const auto& [backend, links] : by_backend) all.push_back(links);
  return all;
}

std::vector<ExplainedRefusal> refusals_of(const AttachPlan& plan) {
  std::map<std::string, ExplainedRefusal> by_reason;
  for (const SkippedSite& site : plan.skipped) {
    ExplainedRefusal& refusal = by_reason[site.reason];
    refusal.reason = site.reason;
    refusal.sites.emplace_back(site.probe, site.pc);
  }
  std::vector<ExplainedRefusal> all;
  for (auto& [reason, refusal] : by_reason) all.push_back(std::move(refusal));
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.sites.size() > b.sites.size(); });
  return all;
}

/// Returns the features that this plan depends on and the kernel does not tell this user.
std::vector<std::string> assumed_features(const AttachPlan& plan) {
  std::vector<Feature> asked;
  for (const AttachGroup& group : plan.groups) {
    for (const Feature feature : backend_info(group.backend).decided_by) {
      if (std::ranges::find(asked, feature) == asked.end()) asked.push_back(feature);
    }
  }
  std::vector<std::string> assumed;
  for (const Feature feature : asked) {
    const FeatureState state = probe_feature(feature);
    if (state.detail.starts_with("assumed "))
      assumed.push_back(fmt::format("{}{}", state.answer == Answer::yes ? "" : "no ", to_string(feature)));
  }
  return assumed;
}

/// Returns the options that a trace would be started with, as far as they choose hits.
TraceOptions options_of(const Question& question, const Subjects& subjects) {
  TraceOptions options;
  options.backend = question.attaching.backend;
  options.max_overhead = question.limits.max_overhead;
  options.cgroups = subjects.cgroups;
  options.descendants_only = !question.processes.command.empty() && question.following.follow;
  options.command = ::getpid();  // there is none yet
  if (!question.processes.children) return options;
  if (auto family = Processes::of(subjects.pids)) options.family_of = std::move(*family);
  return options;
}

std::string kernel_name() {
  utsname name{};
  return ::uname(&name) == 0 ? fmt::format("{} {}", name.sysname, name.release) : "an unknown kernel";
}

}  // namespace

Result<Explanation> explain_question(const Question& question, const Subjects& subjects,
                                     std::vector<SessionNotice>& notices) {
  FeatureChoice choice = FeatureScope::current();
  choice.assumes_release = true;  // the kernel does not tell everybody
  const FeatureScope scope(choice);
  QuestionPlanner planner(question, subjects, QuestionPlanner::Purpose::explain);
  auto found = planner.find();
  std::ranges::move(planner.take_notices(), std::back_inserter(notices));
  if (!found) return fail(found.error());
  auto planned = TRY(planner.plan(*found));
  Explanation made{.plan = std::move(planned.plan),
                   .sites = {},
                   .links = {},
                   .carriers = {},
                   .refused = {},
                   .others_pay = {},
                   .kernel = kernel_name(),
                   .assumed = {},
                   .no_privilege = {}};
  const TraceOptions options = options_of(question, subjects);
  made.others_pay = Tracer::would_others_pay(made.plan, options).value_or("");
  const bool family = (options.descendants_only || options.family_of) && made.others_pay.empty();
  const bool arguments = !question.view.count_only || !made.plan.filters.empty();
  auto carriers =
      TRY(plan_carriers(made.plan, {.carrier = question.attaching.carrier,
                                    .attach_cookies = probe_feature(Feature::attach_cookie).answer != Answer::no,
                                    .arguments = arguments,
                                    .max_programs = question.attaching.max_programs}));
  made.carriers = carriers.describe();
  made.links = TRY(links_of(question, made.plan, carriers, family));
  made.sites = session::explain_sites(question, made.plan, session::find_costs(*found, planner.kernel(), question));
  made.refused = refusals_of(made.plan);
  made.assumed = assumed_features(made.plan);
  for (const ExplainedLinks& each : made.links)
    if (const auto may = check_privilege(each.backend); !may) made.no_privilege = may.error().message;
  return made;
}

}  // namespace v1
}  // namespace usdt
