// SPDX-License-Identifier: BSD-2-Clause
// What the sections of an object's programs name, made a plan.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/try.hpp"
#include "usdt/bpf_object.hpp"
#include "usdt/features.hpp"
#include "usdt/select.hpp"

namespace usdt {
inline namespace v1 {
namespace {

Result<AttachPlan> plan_points(const std::string& name, const PlanOptions& options) {
  auto patterns = TRY(parse_patterns({name}));
  SearchScope scope;
  scope.pids = pids_of(options.scope);
  auto selection = TRY(select(patterns, scope));
  return plan_attach(selection, kernel_facts(patterns), options);
}

}  // namespace

Result<AttachPlan> plan_sections(const BpfObject& object, const PlanOptions& options) {
  std::vector<ProgramPlan> parts;
  for (const ObjectProgram& program : object.programs()) {
    if (program.points.empty()) continue;
    auto plan = plan_points(program.points, options);
    if (!plan) return fail(plan.error().within(fmt::format("SEC(\"{}\") of {}", program.section, program.name)));
    parts.push_back({program.name, std::move(*plan)});
  }
  if (parts.empty())
    return fail(ErrorKind::not_found,
                "no section of the BPF object names attach points: SEC(\"usdt/PATH:PROVIDER:NAME\")");
  return join_plans(std::move(parts));
}

}  // namespace v1
}  // namespace usdt
