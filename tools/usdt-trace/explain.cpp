// SPDX-License-Identifier: BSD-2-Clause
#include "explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/report.hpp"
#include "ending.hpp"
#include "process_watch.hpp"
#include "signals.hpp"
#include "sink.hpp"

namespace usdt_trace {
namespace {

/// What the command line is about, where nothing is started or waited for.
usdt::Result<usdt::Subjects> subjects_of(const Flags& flags) {
  usdt::Subjects subjects{.pids = ProcessWatch(flags.question.processes.pids).living(), .program = {}};
  if (subjects.pids.empty() && !flags.question.processes.pids.empty())
    return usdt::fail(usdt::ErrorKind::not_found,
                      fmt::format("no process {}", fmt::join(flags.question.processes.pids, ", ")));
  if (!flags.question.processes.command.empty()) {
    auto program = usdt::find_program(flags.question.processes.command[0]);
    if (!program) return usdt::fail(program.error());
    subjects.program = *program;
  }
  const auto add = [&](usdt::Result<std::filesystem::path> found) -> usdt::Result<void> {
    if (!found) return usdt::fail(found.error());
    subjects.cgroups.push_back(std::move(*found));
    return {};
  };
  for (const std::string& name : flags.question.processes.cgroups)
    if (auto added = add(usdt::find_cgroup(name)); !added) return usdt::fail(added.error());
  for (const std::string& id : flags.question.processes.containers)
    if (auto added = add(usdt::find_container(id)); !added) return usdt::fail(added.error());
  return subjects;
}

usdt::Result<Explanation> explained(const Flags& flags) {
  auto subjects = subjects_of(flags);
  return subjects ? explain_trace(flags, *subjects) : usdt::fail(subjects.error());
}

}  // namespace

int explain(const std::vector<Flags>& questions) {
  ignore_write_signals();
  auto sink = Sink::open(questions.front().output.file);
  if (!sink) return complain(sink.error(), questions.front());
  usdt::tools::Stream& out = sink->stream();
  out.make_empty();
  int worst = success;
  for (const Flags& flags : questions) {
    const auto explanation = explained(flags);
    if (!explanation) {
      const usdt::Error& error = explanation.error();
      worst = std::max(worst, complain(flags.question.name.empty() ? error : error.within(flags.script.place), flags));
      continue;
    }
    flags.output.format == Format::json ? write_json(*explanation, flags, out) : write_text(*explanation, flags, out);
  }
  const bool written = out.flush() == usdt::tools::Stream::Flushed::all || out.error() == EPIPE;
  return written ? worst : run_time_failure;
}

}  // namespace usdt_trace
