// SPDX-License-Identifier: BSD-2-Clause
// Options about the processes whose hits count, and about what is followed.
#include <fmt/format.h>

#include "session/option_rows.hpp"

namespace usdt::session {
namespace {

constexpr std::string_view kProcesses = "Processes";

Result<void> take_processes(QuestionDraft& draft, const SetOption& set) {
  for (const std::string& value : set.values)
    draft.question.processes.pids.push_back(read_number<std::int32_t>(value).value_or(0));
  return {};
}

/// The rows about what comes while a trace runs.
std::vector<OptionRow> options_of_following() {
  return {
      {{.name = "no-follow",
        .group = kProcesses,
        .description =
            "Only what is there when the trace begins: no libraries that are opened later, no probes that are made "
            "at run time, no file that takes the place of another; with a command: only its own process, not its "
            "children",
        .scope = OptionScope::session},
       [](QuestionDraft& draft, const SetOption&) -> Result<void> {
         draft.question.following.follow = false;
         return {};
       }},
      {{.name = "wait",
        .group = kProcesses,
        .description = "Where nothing matches yet, wait until a file that does is there or is mapped by a process",
        .scope = OptionScope::session},
       into([](QuestionDraft & draft) -> auto& { return draft.question.following.wait; })},
  };
}

/// The rows about cgroups, and what they start.
std::vector<OptionRow> options_of_cgroups() {
  return {
      {{.name = "cgroup",
        .group = kProcesses,
        .kind = OptionKind::text,
        .value_name = "PATH",
        .description =
            "Only processes in this cgroup (v2) and below it, whoever comes and goes: a path below where cgroups "
            "are mounted, or as /proc/PID/cgroup has it",
        .repeats = true,
        .scope = OptionScope::session},
       into([](QuestionDraft & draft) -> auto& { return draft.question.processes.cgroups; })},
      {{.name = "container",
        .group = kProcesses,
        .kind = OptionKind::text,
        .value_name = "ID",
        .description = "The same of a container of docker, podman, containerd or cri-o: its id, or how that begins",
        .repeats = true,
        .scope = OptionScope::session},
       into([](QuestionDraft & draft) -> auto& { return draft.question.processes.containers; })},
      {{.name = "hold-exec",
        .group = kProcesses,
        .description =
            "Hold each program that the traced ones start, or with neither -p nor a command anybody, until it is "
            "traced: none of its hits is missed. A second at most; nothing stays held when this ends",
        .scope = OptionScope::session},
       into([](QuestionDraft & draft) -> auto& { return draft.question.following.hold_exec; })},
      {{.name = "max-followed",
        .group = kProcesses,
        .kind = OptionKind::number,
        .value_name = "N",
        .description =
            "Files that came since the trace began, at most N at once; those that are gone make room for others, and "
            "when that gets short those that nobody has mapped. Users other than root get half of it each at most",
        .usual_value = fmt::format("{}", AskedFollowing().max_followed),
        .least = 1,
        .most = Tracer::kMostAdditions,
        .scope = OptionScope::session},
       into([](QuestionDraft & draft) -> auto& { return draft.question.following.max_followed; })},
  };
}

}  // namespace

std::vector<OptionRow> options_of_processes() {
  std::vector<OptionRow> rows = {
      {{.name = "pid",
        .short_name = "p",
        .group = kProcesses,
        .kind = OptionKind::processes,
        .value_name = "PID[,PID]",
        .description = "Only these processes, at most 64; until all have ended",
        .repeats = true,
        .scope = OptionScope::session},
       take_processes},
      {{.name = "children",
        .group = kProcesses,
        .description = "With -p: their children, and the children of those, as well",
        .scope = OptionScope::session},
       into([](QuestionDraft & draft) -> auto& { return draft.question.processes.children; })},
  };
  return join_rows(std::move(rows), options_of_following(), options_of_cgroups());
}

}  // namespace usdt::session
