// SPDX-License-Identifier: BSD-2-Clause
// Several plans made one: every index of a part moves behind those of the parts before it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "usdt/plan.hpp"

namespace usdt {
namespace {

bool same_scope(const Scope& a, const Scope& b) {
  std::vector<pid_t> of_a = pids_of(a), of_b = pids_of(b);
  std::ranges::sort(of_a);
  std::ranges::sort(of_b);
  return of_a == of_b;
}

template <class T>
void append(std::vector<T>& to, std::vector<T>&& more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Where a part's numbers begin in the whole.
struct Offsets {
  std::uint32_t files, functions, probes, sites, specs, args;

  explicit Offsets(const AttachPlan& whole)
      : files(size(whole.files)),
        functions(size(whole.functions)),
        probes(size(whole.probes)),
        sites(size(whole.sites)),
        specs(size(whole.specs)),
        args(size(whole.args)) {}

 private:
  template <class T>
  static std::uint32_t size(const std::vector<T>& all) {
    return static_cast<std::uint32_t>(all.size());
  }
};

void move_by(std::uint32_t& index, std::uint32_t offset) {
  if (index != kNone) index += offset;
}

void renumber(AttachPlan& part, const Offsets& by, std::uint32_t program) {
  for (PlannedSite& site : part.sites) {
    site.program = program;
    move_by(site.file, by.files);
    move_by(site.function, by.functions);
    site.probe += by.probes;
    site.spec += by.specs;
    site.args += by.args;
  }
  for (PlannedProbe& probe : part.probes) move_by(probe.file, by.files);
  for (SkippedSite& site : part.skipped) {
    move_by(site.file, by.files);
    site.probe += by.probes;
  }
  for (PlannedFile& file : part.files) {
    for (std::uint32_t& site : file.sites) site += by.sites;
  }
  for (PlannedKernel& group : part.kernels) {
    for (std::uint32_t& site : group.sites) site += by.sites;
  }
}

std::uint32_t number_of(std::vector<std::string>& programs, std::string name) {
  const auto known = std::find(programs.begin(), programs.end(), name);
  const auto number = static_cast<std::uint32_t>(known - programs.begin());
  if (known == programs.end()) programs.push_back(std::move(name));
  return number;
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
  if (sites > USDT_MAX_SITES)
    return fail(ErrorKind::limit, fmt::format("{} sites: at most {} can be told apart", sites, USDT_MAX_SITES));
  return {};
}

}  // namespace

Result<AttachPlan> join_plans(std::vector<ProgramPlan> parts) {
  if (auto possible = check(parts); !possible) return fail(possible.error());
  AttachPlan whole;
  whole.scope = parts.front().plan.scope;
  for (auto& [program, part] : parts) {
    renumber(part, Offsets(whole), number_of(whole.programs, std::move(program)));
    if (!part.kernels.empty()) whole.kernel_machine = part.kernel_machine;
    append(whole.files, std::move(part.files));
    append(whole.functions, std::move(part.functions));
    append(whole.kernels, std::move(part.kernels));
    append(whole.probes, std::move(part.probes));
    append(whole.sites, std::move(part.sites));
    append(whole.skipped, std::move(part.skipped));
    append(whole.specs, std::move(part.specs));
    append(whole.args, std::move(part.args));
    whole.max_args = std::max(whole.max_args, part.max_args);
    whole.string_slots = std::max(whole.string_slots, part.string_slots);
  }
  return whole;
}

}  // namespace usdt
