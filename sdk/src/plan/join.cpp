// SPDX-License-Identifier: BSD-2-Clause
// Several plans made one: every index of a part moves behind those of the parts before it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/no_memory.hpp"
#include "base/try.hpp"
#include "expr/row.hpp"
#include "plan/values.hpp"
#include "usdt/plan.hpp"

namespace usdt {
inline namespace v1 {
namespace {

bool same_scope(const Scope& a, const Scope& b) {
  std::vector<pid_t> of_a = pids_of(a), of_b = pids_of(b);
  std::ranges::sort(of_a);
  std::ranges::sort(of_b);
  return of_a == of_b;
}

/// Moves what a part's indices are of behind what the whole has already.
class Renumber {
 public:
  explicit Renumber(const AttachPlan& whole)
      : files_(whole.files.next().value),
        functions_(whole.functions.next().value),
        probes_(whole.probes.next().value),
        sites_(whole.sites.next().value),
        specs_(whole.specs.next().value),
        args_(whole.args.next().value),
        filters_(whole.filters.next().value) {}

  void apply(AttachPlan& part) const {
    for (PlannedSite& site : part.sites) {
      std::visit(*this, site.point);
      move(site.probe);
      move(site.spec);
      move(site.args);
      if (site.filter) move(*site.filter);
      if (site.pair) move(*site.pair);
      if (site.span) move(*site.span);
    }
    for (PlannedProbe& probe : part.probes) {
      if (probe.file) move(*probe.file);
      if (probe.span) move(*probe.span);
    }
    for (SkippedSite& site : part.skipped) move(site.probe);
    for (AttachGroup& group : part.groups) {
      if (auto* file = std::get_if<Index<PlannedFile>>(&group.of)) move(*file);
      for (Index<PlannedSite>& site : group.sites) move(site);
    }
  }

  void operator()(FilePlace& place) const { move(place.file); }
  void operator()(KernelFunctionPlace& place) const { move(place.function); }
  void operator()(TracepointPlace& place) const { move(place.tracepoint); }

 private:
  void move(Index<PlannedFile>& index) const { index.value += files_; }
  void move(Index<PlannedFunction>& index) const { index.value += functions_; }
  void move(Index<PlannedProbe>& index) const { index.value += probes_; }
  void move(Index<PlannedSite>& index) const { index.value += sites_; }
  void move(Index<EncodedSpec>& index) const { index.value += specs_; }
  void move(Index<std::vector<Arg>>& index) const { index.value += args_; }
  void move(Index<TypedExpression>& index) const { index.value += filters_; }
  template <class T>
  void move(FromTo<T>& span) const {
    move(span.begin);
    move(span.end);
  }

  std::uint32_t files_, functions_, probes_, sites_, specs_, args_, filters_;
};

Index<std::string> number_of(Table<std::string>& programs, std::string name) {
  for (const Index<std::string> known : programs.indices()) {
    if (programs[known] == name) return known;
  }
  return programs.add(std::move(name));
}

/// `part` behind what `whole` has.
void append(AttachPlan& whole, AttachPlan part) {
  Renumber(whole).apply(part);
  if (has_kernel_points(part)) whole.kernel_machine = part.kernel_machine;
  whole.files.append(std::move(part.files));
  whole.functions.append(std::move(part.functions));
  whole.groups.append(std::move(part.groups));
  whole.probes.append(std::move(part.probes));
  whole.sites.append(std::move(part.sites));
  std::ranges::move(part.skipped, std::back_inserter(whole.skipped));
  whole.specs.append(std::move(part.specs));
  whole.args.append(std::move(part.args));
  whole.filters.append(std::move(part.filters));
  whole.max_args = std::max(whole.max_args, part.max_args);
  whole.max_entries = std::max(whole.max_entries, part.max_entries);
  whole.max_steps = std::max(whole.max_steps, part.max_steps);
  whole.string_slots = std::max(whole.string_slots, part.string_slots);
  whole.owners |= part.owners;
  whole.contexts |= part.contexts;
  whole.attributes |= part.attributes;
}

Result<void> check_number(std::size_t sites) {
  if (sites > USDT_MAX_SITES)
    return fail(ErrorKind::limit, fmt::format("{} sites: at most {} can be told apart", sites, USDT_MAX_SITES));
  return {};
}

Result<void> check(const std::vector<ProgramPlan>& parts) {
  if (parts.empty()) return fail(ErrorKind::invalid_argument, "no plan to join");
  std::size_t sites = 0;
  for (const ProgramPlan& part : parts) {
    if (part.program.empty()) return fail(ErrorKind::invalid_argument, "a part of a plan without a program's name");
    if (!part.plan.programs.empty())
      return fail(ErrorKind::invalid_argument, fmt::format("the part of '{}' is joined already", part.program));
    if (!same_scope(part.plan.scope, parts.front().plan.scope))
      return fail(ErrorKind::invalid_argument,
                  fmt::format("'{}' and '{}' are for different processes: load two objects", parts.front().program,
                              part.program));
    sites += part.plan.sites.size();
  }
  return check_number(sites);
}

}  // namespace

Result<AttachPlan> append_plan(AttachPlan whole, AttachPlan part) try {
  if (whole.spans.has_value() != part.spans.has_value())
    return fail(ErrorKind::invalid_argument, "only one of the plans is of spans");
  // Programs of spans are the tracer's own, and equal in all plans about one question.
  if (whole.spans ? !std::ranges::equal(whole.programs, part.programs)
                  : !(whole.programs.empty() && part.programs.empty()))
    return fail(ErrorKind::invalid_argument, "a plan that names programs is joined already");
  TRY(check_number(whole.sites.size() + part.sites.size()));
  if (whole.table.has_value() != part.table.has_value())
    return fail(ErrorKind::invalid_argument, "only one of the plans has a table");
  if (whole.table) {
    if (std::string why = expr::why_other_rows(*whole.table, *part.table); !why.empty())
      return fail(ErrorKind::invalid_argument, std::move(why));
    plan::take_signs_of(part, *whole.table);
  }
  append(whole, std::move(part));
  return whole;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

Result<AttachPlan> join_plans(std::vector<ProgramPlan> parts) try {
  TRY(check(parts));
  AttachPlan whole;
  whole.scope = parts.front().plan.scope;
  for (auto& [program, part] : parts) {
    const Index<std::string> number = number_of(whole.programs, std::move(program));
    for (PlannedSite& site : part.sites) site.program = number;
    append(whole, std::move(part));
  }
  return whole;
} catch (const std::bad_alloc&) {
  return fail(no_memory());
}

}  // namespace v1
}  // namespace usdt
