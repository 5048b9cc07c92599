// SPDX-License-Identifier: BSD-2-Clause
#include "explanation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <set>
#include <tuple>

#include "expression_text.hpp"
#include "notice.hpp"

namespace usdt_trace {
namespace {

using Role = ExplainedSites::Role;

/// The cost of points in files, by file and address.
using Costs = std::map<std::pair<const usdt::ElfFile*, std::uint64_t>, usdt::SiteCost>;

/// A function's first instruction, or its RET instructions, which have a breakpoint.
usdt::SiteCost cost_of(const usdt::FunctionPoint& point, usdt::Machine machine) {
  const usdt::SiteClass entry = point.site_class;
  if (!point.rets.empty() && steps_returns(machine))
    return {usdt::CostClass::single_step,
            "breakpoint and single step at each RET instruction, about 10 times a nop (--no-ret-probes: the kernel's)"};
  if (entry == usdt::SiteClass::unknown) return {usdt::CostClass::trap, "breakpoint"};
  if (entry == usdt::SiteClass::single_step)
    return {usdt::CostClass::single_step, "breakpoint and single step, about 10 times a nop"};
  const bool emulated = entry == usdt::SiteClass::emulated;
  return {emulated ? usdt::CostClass::emulated : usdt::CostClass::trap,
          emulated ? "breakpoint, instruction emulated" : "breakpoint, nop emulated"};
}

Costs costs_of(const usdt::FoundPoints& found, const usdt::KernelFacts& kernel, const Flags& flags) {
  Costs costs;
  usdt::PlanOptions options;
  options.allow_unsafe_nop5 = flags.question.attaching.allow_unsafe_nop5;
  const auto add = [&](const usdt::Selection& selection) {
    for (const usdt::ProbeFile& file : selection.files) {
      for (const usdt::Site& site : file.sites)
        costs.try_emplace({file.elf.get(), site.pc.value}, usdt::site_cost(site, *file.elf, kernel, options));
      for (const usdt::FunctionPoint& point : file.functions)
        costs.try_emplace({file.elf.get(), point.pc.value}, cost_of(point, file.elf->machine()));
    }
  };
  add(found.selection);
  if (found.ends) add(*found.ends);
  return costs;
}

/// Medians of docs/results/hit.md, ns: what the kernel does at a hit, and the program's parts.
namespace measured {
constexpr unsigned kTrap = 860, kCall = 710, kEmulated = 970, kSingleStep = 12'400;
constexpr unsigned kProgram = 60, kValue = 5, kRead = 100, kRecord = 180;
}  // namespace measured

unsigned measured_cost(usdt::CostClass cost) {
  switch (cost) {
    case usdt::CostClass::trap:
      return measured::kTrap;
    case usdt::CostClass::optimised:
      return measured::kCall;
    case usdt::CostClass::emulated:
      return measured::kEmulated;
    case usdt::CostClass::single_step:
      return measured::kSingleStep;
    case usdt::CostClass::refused:
      break;
  }
  return 0;
}

/// Two digits are all that is known.
unsigned rounded(unsigned ns) {
  unsigned unit = 1;
  while (ns / unit >= 100) unit *= 10;
  return (ns + unit / 2) / unit * unit;
}

unsigned reads_of(const usdt::Arg& arg) {
  const auto* memory = std::get_if<usdt::Memory>(&arg.location);
  const auto steps = std::ranges::count_if(arg.steps, [](const usdt::Step& step) { return step.size > 0; });
  return static_cast<unsigned>(steps) + (memory != nullptr && !memory->is_value ? 1 : 0);
}

/// "8(%rsp), then 8 bytes at +16, 3 bits of 4 bytes at +4"
std::string where_text(const usdt::Arg& arg, usdt::Machine machine) {
  std::string text = location_text(arg.location, machine);
  for (const usdt::Step& step : arg.steps) {
    const auto away = static_cast<std::int64_t>(step.displacement);
    if (step.size == 0) {
      text += fmt::format(", {:+}", away);
      continue;
    }
    text += fmt::format(", then {}{} byte{} at {:+}", step.bits > 0 ? fmt::format("{} bits of ", step.bits) : "",
                        step.size, step.size == 1 ? "" : "s", away);
  }
  return text;
}

ValueNames names_of(const std::vector<usdt::Arg>& args) {
  ValueNames names;
  std::size_t number = 0;
  std::size_t of_end = 0;
  for (const usdt::Arg& arg : args) {
    const std::size_t own = arg.of_end ? of_end++ : number++;
    const std::string_view end = arg.of_end && !arg.name().starts_with("end.") ? "end." : "";
    names.push_back(arg.result && arg.name().empty() ? fmt::format("{}{}", end, usdt::kReturnValue)
                    : arg.name().empty()             ? fmt::format("{}arg{}", end, own)
                                                     : fmt::format("{}{}", end, arg.name()));
  }
  return names;
}

/// Explains the sites of one plan.
class Explainer {
 public:
  Explainer(const Flags& flags, const usdt::AttachPlan& plan, const Costs& costs)
      : flags_(flags), plan_(plan), costs_(costs), backend_of_(plan.sites.size()), moment_of_(plan.sites.size()) {
    for (const usdt::AttachGroup& group : plan.groups) {
      for (const auto site : group.sites) {
        backend_of_[site.value] = group.backend;
        moment_of_[site.value] = group.moment;
      }
    }
  }

  [[nodiscard]] std::vector<ExplainedSites> all() {
    for (std::uint32_t n = 0; n < plan_.sites.size(); ++n) add(usdt::Index<usdt::PlannedSite>(n));
    return std::move(all_);
  }

 private:
  void add(usdt::Index<usdt::PlannedSite> index) {
    const usdt::PlannedSite& site = plan_.sites[index];
    const usdt::SiteCost cost = cost_of(site);
    const auto none = usdt::Index<usdt::TypedExpression>(UINT32_MAX);
    const auto key = std::tuple(site.probe.value, site.spec.value, site.args.value, site.filter.value_or(none).value,
                                site.pair.value_or(none).value, cost.text);
    const auto [known, is_new] = known_.try_emplace(key, all_.size());
    if (is_new) all_.push_back(explained(index, site, cost));
    all_[known->second].sites.push_back(index);
  }

  [[nodiscard]] usdt::SiteCost cost_of(const usdt::PlannedSite& site) const {
    const auto* place = std::get_if<usdt::FilePlace>(&site.point);
    if (place == nullptr || site.span) return {};
    const auto found = costs_.find({plan_.files[place->file].elf.get(), place->pc.value});
    return found == costs_.end() ? usdt::SiteCost{usdt::CostClass::trap, "breakpoint"} : found->second;
  }

  [[nodiscard]] Role role_of(usdt::Index<usdt::PlannedSite> index) const {
    if (!plan_.spans) return Role::point;
    if (plan_.sites[index].span) return Role::span;
    return index.value < plan_.spans->begins ? Role::begin : Role::end;
  }

  [[nodiscard]] ExplainedSites explained(usdt::Index<usdt::PlannedSite> index, const usdt::PlannedSite& site,
                                         const usdt::SiteCost& cost) const {
    ExplainedSites made{.probe = site.probe, .role = role_of(index), .cost_class = {}, .cost = {}};
    const bool in_file = std::holds_alternative<usdt::FilePlace>(site.point) && made.role != Role::span;
    if (in_file) made.cost_class = to_string(cost.cost);
    made.cost = in_file ? cost.text : made.role == Role::span ? std::string() : in_kernel(index);
    made.recorded = !flags_.question.view.no_events() && (made.role == Role::point || made.role == Role::span);
    ask(site, made);
    read(site, made);
    if (in_file && moment_of_[index.value] == usdt::Moment::entry) estimate(cost, made);
    if (in_file && moment_of_[index.value] != usdt::Moment::entry) made.cost += returns(site);
    return made;
  }

  /// "; its return as well by a return probe"
  [[nodiscard]] std::string returns(const usdt::PlannedSite& site) const {
    const auto& rets = std::get<usdt::FilePlace>(site.point).rets;
    return rets.empty() ? "; and the kernel's return probe" : fmt::format("; and at {} RETs", rets.size());
  }

  [[nodiscard]] std::string in_kernel(usdt::Index<usdt::PlannedSite> index) const {
    const usdt::BackendInfo& info = usdt::backend_info(backend_of_[index.value]);
    return fmt::format("{} by {}", info.points == usdt::PointKind::tracepoint ? "a tracepoint" : "a kernel function",
                       info.name);
  }

  /// Adds the questions about the hits of a site, and about which values they are.
  void ask(const usdt::PlannedSite& site, ExplainedSites& made) const {
    const ValueNames names = names_of(plan_.args[site.args]);
    if (site.pair) add_row(plan_.filters[*site.pair], names, "pair-by", made);
    // A question about a whole span is asked where it ends.
    const auto& filter = site.span ? plan_.sites[site.span->end].filter : site.filter;
    if (!filter || made.role == Role::begin || made.role == Role::end) return;
    const usdt::TypedExpression& question = plan_.filters[*filter];
    if (question.root().op == usdt::Operator::row) return add_row(question, names, "by", made);
    made.questions.push_back({"where", expression_text(question, question.root(), names), {}});
  }

  static void add_row(const usdt::TypedExpression& row, const ValueNames& names, const char* keys,
                      ExplainedSites& made) {
    for (std::size_t i = 0; i < row.root().of.size(); ++i) {
      const usdt::TypedExpression::Node& part = row.root().of[i];
      const std::string text = expression_text(row, part, names);
      const bool always = i == 0 && part.of[0].op == usdt::Operator::integer && part.of[0].bits != 0;
      if (always) continue;
      made.questions.push_back({i == 0                 ? "where"
                                : i <= row.root().bits ? keys
                                                       : "value",
                                text, i == 0 ? std::string() : std::string(type_text(part.type))});
    }
  }

  /// Positions of the values that are read where no event is made of a hit.
  [[nodiscard]] std::set<std::size_t> asked(const usdt::PlannedSite& site) const {
    std::set<std::size_t> positions;
    for (const auto& question : {site.filter, site.pair}) {
      if (!question) continue;
      const auto& args = plan_.filters[*question].args();
      positions.insert(args.begin(), args.end());
    }
    return positions;
  }

  void read(const usdt::PlannedSite& site, ExplainedSites& made) const {
    if (made.role == Role::span) return;  // its ends read
    const auto& args = plan_.args[site.args];
    const ValueNames names = names_of(args);
    const bool everything =
        !flags_.question.view.no_events() || plan_.spans;  // a span's beginning is kept until it ends
    const std::set<std::size_t> positions = everything ? std::set<std::size_t>() : asked(site);
    for (std::size_t n = 0; n < args.size(); ++n)
      if (everything || positions.contains(n)) made.values.push_back(value(site, n, names[n]));
  }

  [[nodiscard]] ExplainedValue value(const usdt::PlannedSite& site, std::size_t n, const std::string& name) const {
    const usdt::Arg& arg = plan_.args[site.args][n];
    ExplainedValue value{.name = name,
                         .type = usdt::c_type_text(arg),
                         .where = {},
                         .unreadable = std::string(arg.why_unreadable()),
                         .text = {}};
    if (!arg.readable()) return value;
    value.where = where_text(arg, machine_of(plan_, site));
    value.reads = reads_of(arg);
    const auto& specs = plan_.specs[site.spec].args;
    if (asks_text(site, n)) {
      ++value.reads;
      value.text = "as far as it is asked about";
    }
    if (flags_.question.view.no_events() || n >= specs.size() || specs[n].capture == USDT_CAPTURE_NONE) return value;
    ++value.reads;
    value.text = specs[n].capture == USDT_CAPTURE_LIKELY
                     ? fmt::format("where it is text, {} bytes", flags_.question.values.string_size)
                 : arg.length ? std::string("as long as it is")
                              : fmt::format("up to {} bytes", flags_.question.values.string_size);
    return value;
  }

  /// Whether the text that a value points to is compared or a key.
  [[nodiscard]] bool asks_text(const usdt::PlannedSite& site, std::size_t n) const {
    const auto& filter = plan_.spans ? site.pair : site.filter;
    return std::ranges::any_of(std::array{filter, site.pair}, [&](const auto& question) {
      return question && reads_text(plan_.filters[*question], plan_.filters[*question].root(), n);
    });
  }
  static bool reads_text(const usdt::TypedExpression& question, const usdt::TypedExpression::Node& node,
                         std::size_t n) {
    if (node.op == usdt::Operator::text_of && question.args()[static_cast<std::size_t>(node.bits)] == n) return true;
    return std::ranges::any_of(node.of, [&](const auto& each) { return reads_text(question, each, n); });
  }

  void estimate(const usdt::SiteCost& cost, ExplainedSites& made) const {
    unsigned ns = measured_cost(cost.cost) + measured::kProgram;
    for (const ExplainedValue& value : made.values) ns += measured::kValue + value.reads * measured::kRead;
    made.estimate = rounded(ns + (made.recorded ? measured::kRecord : 0));
  }

  const Flags& flags_;
  const usdt::AttachPlan& plan_;
  const Costs& costs_;
  std::vector<usdt::Backend> backend_of_;  ///< by site
  std::vector<usdt::Moment> moment_of_;    ///< likewise
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::string>,
           std::size_t>
      known_;
  std::vector<ExplainedSites> all_;
};

/// How many of which backend.
usdt::Result<std::vector<ExplainedLinks>> links_of(const Flags& flags, const usdt::AttachPlan& plan,
                                                   const usdt::CarrierPlan& carriers, bool family) {
  std::map<usdt::Backend, ExplainedLinks> by_backend;
  std::map<usdt::Backend, std::set<std::uint32_t>> programs;
  for (const usdt::PlannedLink& link : carriers.links) {
    usdt::Backend backend = plan.groups[link.group].backend;
    if (backend == usdt::Backend::automatic && family) {
      backend = usdt::Backend::uprobe_family;
    } else if (backend == usdt::Backend::automatic) {
      auto chosen = usdt::choose_backend(flags.question.attaching.backend);
      if (!chosen) return usdt::fail(chosen.error());
      backend = *chosen;
    }
    ExplainedLinks& links = by_backend[backend];
    links.backend = backend;
    links.sites += link.sites.size();
    links.links += usdt::backend_info(backend).one_link ? 1 : link.sites.size();
    programs[backend].insert(link.program.value);
    const bool of_one_point = usdt::backend_info(backend).tied == usdt::TiedTo::point;
    links.programs = of_one_point ? links.sites : programs[backend].size();
  }
  std::vector<ExplainedLinks> all;
  for (const auto& [backend, links] : by_backend) all.push_back(links);
  return all;
}

std::vector<ExplainedRefusal> refusals_of(const usdt::AttachPlan& plan) {
  std::map<std::string, ExplainedRefusal> by_reason;
  for (const usdt::SkippedSite& site : plan.skipped) {
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
std::vector<std::string> assumed_features(const usdt::AttachPlan& plan) {
  std::vector<usdt::Feature> asked;
  for (const usdt::AttachGroup& group : plan.groups) {
    for (const usdt::Feature feature : usdt::backend_info(group.backend).decided_by) {
      if (std::ranges::find(asked, feature) == asked.end()) asked.push_back(feature);
    }
  }
  std::vector<std::string> assumed;
  for (const usdt::Feature feature : asked) {
    const usdt::FeatureState state = usdt::probe_feature(feature);
    if (state.detail.starts_with("assumed "))
      assumed.push_back(fmt::format("{}{}", state.answer == usdt::Answer::yes ? "" : "no ", to_string(feature)));
  }
  return assumed;
}

/// Returns the options that a trace would be started with, as far as they choose hits.
usdt::TraceOptions options_of(const Flags& flags, const usdt::Subjects& subjects) {
  usdt::TraceOptions options;
  options.backend = flags.question.attaching.backend;
  options.max_overhead = flags.question.limits.max_overhead;
  options.cgroups = subjects.cgroups;
  options.descendants_only = !flags.question.processes.command.empty() && flags.question.following.follow;
  options.command = ::getpid();  // there is none yet
  if (!flags.question.processes.children) return options;
  if (auto family = usdt::Processes::of(subjects.pids)) options.family_of = std::move(*family);
  return options;
}

std::string kernel_name() {
  utsname name{};
  return ::uname(&name) == 0 ? fmt::format("{} {}", name.sysname, name.release) : "an unknown kernel";
}

}  // namespace

usdt::Result<Explanation> explain_trace(const Flags& flags, const usdt::Subjects& subjects) {
  usdt::QuestionPlanner planner(flags.question, subjects, usdt::QuestionPlanner::Purpose::explain);
  auto found = planner.find();
  say_notices(flags, planner);
  if (!found) return usdt::fail(found.error());
  auto planned = planner.plan(*found);
  if (!planned) return usdt::fail(planned.error());
  Explanation made{.plan = std::move(planned->plan),
                   .sites = {},
                   .links = {},
                   .carriers = {},
                   .refused = {},
                   .others_pay = {},
                   .kernel = kernel_name(),
                   .assumed = {},
                   .no_privilege = {}};
  const usdt::TraceOptions options = options_of(flags, subjects);
  made.others_pay = usdt::Tracer::would_others_pay(made.plan, options).value_or("");
  const bool family = (options.descendants_only || options.family_of) && made.others_pay.empty();
  const bool arguments = !flags.question.view.count_only || !made.plan.filters.empty();
  auto carriers = usdt::plan_carriers(
      made.plan, {.carrier = flags.question.attaching.carrier,
                  .attach_cookies = usdt::probe_feature(usdt::Feature::attach_cookie).answer != usdt::Answer::no,
                  .arguments = arguments,
                  .max_programs = flags.question.attaching.max_programs});
  if (!carriers) return usdt::fail(carriers.error());
  made.carriers = carriers->describe();
  auto links = links_of(flags, made.plan, *carriers, family);
  if (!links) return usdt::fail(links.error());
  made.links = std::move(*links);
  const Costs costs = costs_of(*found, planner.kernel(), flags);
  made.sites = Explainer(flags, made.plan, costs).all();
  made.refused = refusals_of(made.plan);
  made.assumed = assumed_features(made.plan);
  for (const ExplainedLinks& each : made.links)
    if (const auto may = usdt::check_privilege(each.backend); !may) made.no_privilege = may.error().message;
  return made;
}

}  // namespace usdt_trace
