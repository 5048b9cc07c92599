// SPDX-License-Identifier: BSD-2-Clause
#include "event/family.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <vector>

#include "backend/table.hpp"
#include "base/try.hpp"
#include "event/load_part.hpp"

namespace usdt::event {
namespace {

bool is_subreaper() {
  int is = 0;
  return ::prctl(PR_GET_CHILD_SUBREAPER, &is) == 0 && is != 0;
}

/// `before`: sites that the trace has already.
Result<void> check_sites(const AttachPlan& plan, const TraceOptions& options, std::size_t before) {
  if (options.max_overhead > 0)
    return fail(ErrorKind::not_supported, "with a limited overhead sites are attached again and again");
  if (options.backend != Backend::automatic)
    return fail(ErrorKind::not_supported, fmt::format("{} was asked for", to_string(options.backend)));
  for (const AttachGroup& group : plan.groups)
    if (group.backend != Backend::automatic && !is_kernel(group.backend))
      return fail(ErrorKind::not_supported,
                  fmt::format("{} is for everybody, or one process", to_string(group.backend)));
  if (before + plan.places() > backends::kMostFamilySites)
    return fail(ErrorKind::not_supported, fmt::format("it is more than {} sites", backends::kMostFamilySites));
  return {};
}

/// Whether breakpoints of everybody are no question: no place is in a file, or the kernel's filter by process does.
bool is_nobody_else_concerned(const AttachPlan& plan) { return plan.files.empty() || !pids_of(plan.scope).empty(); }

Result<void> check_family(const AttachPlan& plan, const TraceOptions& options, std::size_t before) {
  if (!options.cgroups.empty())
    return fail(ErrorKind::not_supported, "the kernel tells no tracer of a process that is put into a cgroup");
  if (!follows_family(options)) return {};
  if (options.descendants_only && options.command == 0)
    return fail(ErrorKind::not_supported, "the tracer may start more processes");
  return check_sites(plan, options, before);
}

/// Those whom usdt-broker is asked for one by one. Orphans of a command come back to the calling process, if it is a
/// subreaper.
backends::Family family_there(const TraceOptions& options) {
  backends::Family family;
  if (options.family_of) family.roots = options.family_of->pids();
  if (!options.descendants_only) return family;
  family.without_self = true;
  if (options.command != 0) family.roots.push_back(options.command);
  if (options.command == 0 || is_subreaper()) family.roots.push_back(::getpid());
  return family;
}

/// All that descends from the calling process, now and later.
Result<backends::Family> descendants_of_caller() {
  if (!is_subreaper())
    return fail(ErrorKind::not_supported,
                "orphans of the command do not come back to the tracer, which is no subreaper");
  return backends::Family{.roots = {::getpid()}, .without_self = true};
}

}  // namespace

Result<backends::Family> family_of(const AttachPlan& plan, const TraceOptions& options) {
  if (is_nobody_else_concerned(plan)) return backends::Family();
  if (options.broker) return family_there(options);
  TRY(check_family(plan, options, 0));
  if (!follows_family(options)) return backends::Family();
  if (options.family_of)
    return backends::Family{.roots = options.family_of->pids(), .without_self = options.leave_out_self};
  if (options.command_runs) return descendants_of_caller();
  return backends::Family{.roots = {options.command}, .held = true};
}

Result<backends::Family> running_family_of(const AttachPlan& more, const AttachPlan& before,
                                           const TraceOptions& options) {
  if (is_nobody_else_concerned(more)) return backends::Family();
  if (options.broker) return family_there(options);
  TRY(check_family(more, options, before.places()));
  if (!follows_family(options)) return backends::Family();
  if (options.family_of)
    return fail(ErrorKind::not_supported, "what comes while a trace runs is attached for everybody");
  return descendants_of_caller();
}

}  // namespace usdt::event
