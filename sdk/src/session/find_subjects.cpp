// SPDX-License-Identifier: BSD-2-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "session/process_watch.hpp"
#include "usdt/follow.hpp"
#include "usdt/probe_file.hpp"
#include "usdt/question_plan.hpp"

namespace usdt {
inline namespace v1 {

Result<Subjects> find_subjects(const AskedProcesses& processes) {
  Subjects subjects{.pids = session::ProcessWatch(processes.pids).living()};
  if (subjects.pids.empty() && !processes.pids.empty())
    return fail(ErrorKind::not_found, fmt::format("no process {}", fmt::join(processes.pids, ", ")));
  if (!processes.command.empty()) {
    auto program = TRY(find_program(processes.command[0]));
    subjects.program = program;
  }
  const auto add = [&](Result<std::filesystem::path> found) -> Result<void> {
    if (!found) return fail(found.error());
    subjects.cgroups.push_back(std::move(*found));
    return {};
  };
  for (const std::string& name : processes.cgroups) TRY(add(find_cgroup(name)));
  for (const std::string& id : processes.containers) TRY(add(find_container(id)));
  return subjects;
}

}  // namespace v1
}  // namespace usdt
