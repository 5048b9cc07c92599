// SPDX-License-Identifier: BSD-2-Clause
#include "explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
usdt::Result<Subjects> subjects_of(const Flags& flags) {
  Subjects subjects{.pids = ProcessWatch(flags.pids).living(), .program = {}};
  if (subjects.pids.empty() && !flags.pids.empty())
    return usdt::fail(usdt::ErrorKind::not_found, fmt::format("no process {}", fmt::join(flags.pids, ", ")));
  if (!flags.command.empty()) {
    auto program = usdt::find_program(flags.command[0]);
    if (!program) return usdt::fail(program.error());
    subjects.program = *program;
  }
  const auto add = [&](usdt::Result<std::filesystem::path> found) -> usdt::Result<void> {
    if (!found) return usdt::fail(found.error());
    subjects.cgroups.push_back(std::move(*found));
    return {};
  };
  for (const std::string& name : flags.cgroups)
    if (auto added = add(usdt::find_cgroup(name)); !added) return usdt::fail(added.error());
  for (const std::string& id : flags.containers)
    if (auto added = add(usdt::find_container(id)); !added) return usdt::fail(added.error());
  return subjects;
}

usdt::Result<Explanation> explained(const Flags& flags) {
  auto subjects = subjects_of(flags);
  return subjects ? explain_trace(flags, *subjects) : usdt::fail(subjects.error());
}

}  // namespace

int explain(const Flags& flags) {
  ignore_write_signals();
  const auto explanation = explained(flags);
  if (!explanation) return complain(explanation.error(), flags);
  auto sink = Sink::open(flags.output);
  if (!sink) return complain(sink.error(), flags);
  usdt::tools::Stream& out = sink->stream();
  flags.format == Format::json ? write_json(*explanation, out) : write_text(*explanation, flags, out);
  return out.flush() == usdt::tools::Stream::Flushed::all || out.error() == EPIPE ? success : run_time_failure;
}

}  // namespace usdt_trace
