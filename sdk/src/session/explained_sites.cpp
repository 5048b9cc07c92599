// SPDX-License-Identifier: BSD-2-Clause
#include "session/explained_sites.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "session/expression_text.hpp"
#include "session/split_condition.hpp"
#include "usdt/signature.hpp"

namespace usdt::session {
namespace {

using Role = ExplainedSites::Role;

unsigned reads_of(const Arg& arg) {
  const auto* memory = std::get_if<Memory>(&arg.location);
  const auto steps = std::ranges::count_if(arg.steps, [](const Step& step) { return step.size > 0; });
  return static_cast<unsigned>(steps) + (memory != nullptr && !memory->is_value ? 1 : 0);
}

/// "8(%rsp), then 8 bytes at +16, 3 bits of 4 bytes at +4"
std::string where_text(const Arg& arg, Machine machine) {
  std::string text = location_text(arg.location, machine);
  for (const Step& step : arg.steps) {
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

ValueNames names_of(const std::vector<Arg>& args) {
  ValueNames names;
  std::size_t number = 0;
  std::size_t of_end = 0;
  for (const Arg& arg : args) {
    const std::size_t own = arg.of_end ? of_end++ : number++;
    const std::string_view end = arg.of_end && !arg.name().starts_with("end.") ? "end." : "";
    names.push_back(arg.result && arg.name().empty() ? fmt::format("{}{}", end, kReturnValue)
                    : arg.name().empty()             ? fmt::format("{}arg{}", end, own)
                                                     : fmt::format("{}{}", end, arg.name()));
  }
  return names;
}

/// Explains the sites of one plan.
class SiteExplainer {
 public:
  SiteExplainer(const Question& question, const AttachPlan& plan, const SiteCosts& costs)
      : question_(question), plan_(plan), costs_(costs), backend_of_(plan.sites.size()), moment_of_(plan.sites.size()) {
    for (const AttachGroup& group : plan.groups) {
      for (const auto site : group.sites) {
        backend_of_[site.value] = group.backend;
        moment_of_[site.value] = group.moment;
      }
    }
  }

  [[nodiscard]] std::vector<ExplainedSites> all() {
    for (std::uint32_t n = 0; n < plan_.sites.size(); ++n) add(Index<PlannedSite>(n));
    return std::move(all_);
  }

 private:
  void add(Index<PlannedSite> index) {
    const PlannedSite& site = plan_.sites[index];
    const SiteCost cost = cost_of(site);
    const auto none = Index<TypedExpression>(UINT32_MAX);
    const auto key = std::tuple(site.probe.value, site.spec.value, site.args.value, site.filter.value_or(none).value,
                                site.pair.value_or(none).value, cost.text);
    const auto [known, is_new] = known_.try_emplace(key, all_.size());
    if (is_new) all_.push_back(explained(index, site, cost));
    all_[known->second].sites.push_back(index);
  }

  [[nodiscard]] SiteCost cost_of(const PlannedSite& site) const {
    const auto* place = std::get_if<FilePlace>(&site.point);
    if (place == nullptr || site.span) return {};
    const auto found = costs_.find({plan_.files[place->file].elf.get(), place->pc.value});
    return found == costs_.end() ? SiteCost{CostClass::trap, "breakpoint"} : found->second;
  }

  [[nodiscard]] Role role_of(Index<PlannedSite> index) const {
    if (!plan_.spans) return Role::point;
    if (plan_.sites[index].span) return Role::span;
    return index.value < plan_.spans->begins ? Role::begin : Role::end;
  }

  [[nodiscard]] ExplainedSites explained(Index<PlannedSite> index, const PlannedSite& site,
                                         const SiteCost& cost) const {
    ExplainedSites made{.probe = site.probe, .role = role_of(index), .cost_class = {}, .cost = {}};
    const bool in_file = std::holds_alternative<FilePlace>(site.point) && made.role != Role::span;
    if (in_file) made.cost_class = to_string(cost.cost);
    made.cost = in_file ? cost.text : made.role == Role::span ? std::string() : in_kernel(index);
    made.recorded = makes_events() && (made.role == Role::point || made.role == Role::span);
    ask(site, made);
    read(site, made);
    if (in_file && moment_of_[index.value] == Moment::entry)
      made.estimate = estimate_hit(cost.cost, made.values, made.recorded);
    if (in_file && moment_of_[index.value] != Moment::entry) made.cost += returns(site);
    return made;
  }

  /// "; its return as well by a return probe"
  [[nodiscard]] std::string returns(const PlannedSite& site) const {
    const auto& rets = std::get<FilePlace>(site.point).rets;
    return rets.empty() ? "; and the kernel's return probe" : fmt::format("; and at {} RETs", rets.size());
  }

  [[nodiscard]] std::string in_kernel(Index<PlannedSite> index) const {
    const BackendInfo& info = backend_info(backend_of_[index.value]);
    return fmt::format("{} by {}", info.points == PointKind::tracepoint ? "a tracepoint" : "a kernel function",
                       info.name);
  }

  /// Adds the questions about the hits of a site, and about which values they are.
  void ask(const PlannedSite& site, ExplainedSites& made) const {
    const ValueNames names = names_of(plan_.args[site.args]);
    if (site.pair) add_row(plan_.filters[*site.pair], names, "pair-by", made);
    // A question about a whole span is asked where it ends.
    const auto& filter = site.span ? plan_.sites[site.span->end].filter : site.filter;
    if (made.role == Role::begin || made.role == Role::end) return;
    ask_events(made);
    if (!filter) return;
    const TypedExpression& question = plan_.filters[*filter];
    if (question.root().op == Operator::row) return add_row(question, names, "by", made);
    made.questions.push_back({"where", expression_text(question, question.root(), names), {}});
  }

  /// Adds the questions that the kernel does not answer.
  void ask_events(ExplainedSites& made) const {
    if (split_condition(question_.where).of_events) made.questions.push_back({"of events", question_.where->text, {}});
    if (!question_.view.of_events) return;
    for (const Expression& key : question_.view.question->keys) made.questions.push_back({"by", key.text, {}});
    if (const auto& value = question_.view.question->value) made.questions.push_back({"value", value->text, {}});
  }

  /// Whether events are made of hits, to be shown or to make a table of.
  [[nodiscard]] bool makes_events() const { return !question_.view.no_events() || question_.view.of_events; }

  static void add_row(const TypedExpression& row, const ValueNames& names, const char* keys, ExplainedSites& made) {
    for (std::size_t i = 0; i < row.root().of.size(); ++i) {
      const TypedExpression::Node& part = row.root().of[i];
      const std::string text = expression_text(row, part, names);
      const bool always = i == 0 && part.of[0].op == Operator::integer && part.of[0].bits != 0;
      if (always) continue;
      made.questions.push_back({i == 0                 ? "where"
                                : i <= row.root().bits ? keys
                                                       : "value",
                                text, i == 0 ? std::string() : std::string(type_text(part.type))});
    }
  }

  /// Positions of the values that are read where no event is made of a hit.
  [[nodiscard]] std::set<std::size_t> asked(const PlannedSite& site) const {
    std::set<std::size_t> positions;
    for (const auto& question : {site.filter, site.pair}) {
      if (!question) continue;
      const auto& args = plan_.filters[*question].args();
      positions.insert(args.begin(), args.end());
    }
    return positions;
  }

  void read(const PlannedSite& site, ExplainedSites& made) const {
    if (made.role == Role::span) return;  // its ends read
    const auto& args = plan_.args[site.args];
    const ValueNames names = names_of(args);
    const bool everything = makes_events() || plan_.spans;  // a span's beginning is kept until it ends
    const std::set<std::size_t> positions = everything ? std::set<std::size_t>() : asked(site);
    for (std::size_t n = 0; n < args.size(); ++n)
      if (everything || positions.contains(n)) made.values.push_back(value(site, n, names[n]));
  }

  [[nodiscard]] ExplainedValue value(const PlannedSite& site, std::size_t n, const std::string& name) const {
    const Arg& arg = plan_.args[site.args][n];
    ExplainedValue value{.name = name,
                         .type = c_type_text(arg),
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
    if (!makes_events() || n >= specs.size() || specs[n].capture == USDT_CAPTURE_NONE) return value;
    ++value.reads;
    value.text = specs[n].capture == USDT_CAPTURE_LIKELY
                     ? fmt::format("where it is text, {} bytes", question_.values.string_size)
                 : arg.length ? std::string("as long as it is")
                              : fmt::format("up to {} bytes", question_.values.string_size);
    return value;
  }

  /// Whether the text that a value points to is compared or a key.
  [[nodiscard]] bool asks_text(const PlannedSite& site, std::size_t n) const {
    const auto& filter = plan_.spans ? site.pair : site.filter;
    return std::ranges::any_of(std::array{filter, site.pair}, [&](const auto& question) {
      return question && reads_text(plan_.filters[*question], plan_.filters[*question].root(), n);
    });
  }
  static bool reads_text(const TypedExpression& question, const TypedExpression::Node& node, std::size_t n) {
    if (node.op == Operator::text_of && question.args()[static_cast<std::size_t>(node.bits)] == n) return true;
    return std::ranges::any_of(node.of, [&](const auto& each) { return reads_text(question, each, n); });
  }

  const Question& question_;
  const AttachPlan& plan_;
  const SiteCosts& costs_;
  std::vector<Backend> backend_of_;  ///< by site
  std::vector<Moment> moment_of_;    ///< likewise
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::string>,
           std::size_t>
      known_;
  std::vector<ExplainedSites> all_;
};

}  // namespace

std::vector<ExplainedSites> explain_sites(const Question& question, const AttachPlan& plan, const SiteCosts& costs) {
  return SiteExplainer(question, plan, costs).all();
}

}  // namespace usdt::session
