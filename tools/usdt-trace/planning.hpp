// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "flags.hpp"
#include "usdt/usdt.hpp"

namespace usdt_trace {

/// What a trace is about, where it is not about everybody.
struct Subjects {
  std::vector<pid_t> pids;                          ///< those of --pid that live
  std::optional<std::filesystem::path> program;     ///< the command's
  std::vector<std::filesystem::path> cgroups = {};  ///< of --cgroup and --container: directories
};

struct PlannedTrace {
  usdt::AttachPlan plan;
  usdt::Printed printed;
};

/// It leaves open which files are meant.
[[nodiscard]] bool looks_everywhere(const usdt::PointPattern& pattern);

/// What the lists are about exists in the plan. Errors: invalid_argument.
[[nodiscard]] usdt::Result<void> check_prints(const Flags& flags, const usdt::AttachPlan& plan,
                                              const usdt::Printed& printed);

/// That what --slowest compares has durations: of a plan, or of some of its probes. Errors: invalid_argument.
[[nodiscard]] usdt::Result<void> check_slowest(const Flags& flags, const usdt::AttachPlan& plan,
                                               const std::vector<bool>& probes = {});

/// What the command line names, as it was found.
struct FoundTrace {
  usdt::SearchScope scope;
  usdt::Selection selection;
  std::optional<usdt::Selection> ends = {};  ///< of spans

  /// Of spans not both sides.
  [[nodiscard]] bool lacks_something() const;
};

/// What is traced already.
struct Traced {
  const usdt::AttachPlan& plan;
  const usdt::Printed& printed;
};

/// Plans what came while the trace runs: `file` has what the command line names, of spans both ends. As plan_trace(),
/// but that what a print list names need not be there, unless it is for probes of which these are the first.
[[nodiscard]] usdt::Result<PlannedTrace> plan_more(const Flags& flags, const Subjects& subjects, usdt::ProbeFile file,
                                                   const Traced& before);
/// The same of what was waited for: all that `found` has.
[[nodiscard]] usdt::Result<PlannedTrace> plan_first(const Flags& flags, const Subjects& subjects,
                                                    const FoundTrace& found);

[[nodiscard]] usdt::Result<FoundTrace> find_trace(const Flags& flags, const Subjects& subjects);
/// With --wait, where that found too little: of spans what there is of one side.
[[nodiscard]] FoundTrace find_beginning(const Flags& flags, const Subjects& subjects);
/// Adds what the command line names in a file that came.
void add_file(const Flags& flags, usdt::ProbeFile file, FoundTrace& found);
[[nodiscard]] usdt::Result<PlannedTrace> plan_trace(const Flags& flags, const Subjects& subjects,
                                                    const FoundTrace& found);
/// Finds what the command line names, and plans it.
[[nodiscard]] usdt::Result<PlannedTrace> plan_trace(const Flags& flags, const Subjects& subjects);

/// The running kernel, as plans of that command line see it.
[[nodiscard]] usdt::KernelFacts facts_for(const Flags& flags);

}  // namespace usdt_trace
