// SPDX-License-Identifier: BSD-2-Clause
// Parts of a question that make sense alone, and none together.
#include <algorithm>
#include <array>
#include <variant>

#include "base/try.hpp"
#include "session/rules.hpp"
#include "session/split_condition.hpp"
#include "usdt/question.hpp"

namespace usdt {
inline namespace v1 {
namespace {

using session::check_rules;
using session::Rule;

bool has_limit(const Question& question) { return question.limits.max_events != UINT64_MAX; }
bool has_stacks(const Question& question) { return question.stacks.kernel_depth > 0 || question.stacks.user_depth > 0; }
bool records(const Question& question) { return !question.recording.file.empty(); }
bool replays(const Question& question) { return !question.recording.replay.empty(); }
bool leaves_hits_out(const AskedLimits& limits) {
  return limits.sample > 1 || limits.max_rate > 0 || limits.max_overhead > 0;
}

/// Checks what is shown instead of events.
Result<void> check_view(const Question& question) {
  const View& view = question.view;
  const bool none = view.no_events();
  // A live table is looked at some 20 times a second; the events of a recording have their own times.
  constexpr double shortest = 0.1;
  return check_rules(
      question,
      std::array{
          Rule{replays(question) && view.interval && !view.heat_map,
               "--interval does not go with --replay but for --heatmap: a table of it is of all of a recording"},
          Rule{view.heat_map && !replays(question) && *view.interval < shortest,
               "--heatmap: of less than 100 ms a live trace does not know what came when; --record and --replay do"},
          Rule{view.count_only && records(question), "--count has no events to record"},
          Rule{view.count_only && !replays(question) && session::asks_events(question),
               "--where trace_attribute(...) is asked of events, which --count has none of: --by probe counts them"},
          Rule{none && (!question.values.print.empty() || (has_stacks(question) && !view.makes_rows()) ||
                        has_limit(question)),
               "--count shows no events, nor do tables: --print, --strings, --kstack, --ustack and --max-events do not "
               "go with them"},
          Rule{none && !question.values.format.empty(), "--format-string is of events: --count and tables show none"},
          Rule{view.question && records(question), "--record is of events, and a table has none"},
          Rule{view.interval && !view.question && view.slowest == 0,
               "--interval is about a table (see --by, --sum and --hist), --slowest or --in-flight"},
      });
}

/// Checks what leaves events out, and what wants all of them.
Result<void> check_slowest(const Question& question) {
  if (question.view.in_flight)
    return check_rules(
        question,
        std::array{
            Rule{question.view.count_only, "--in-flight shows beginnings, and --count keeps none"},
            Rule{session::asks_events(question), "--in-flight does not know attributes of what has not ended"},
            Rule{records(question) || replays(question), "--in-flight: a recording has no beginnings without an end"},
            Rule{leaves_hits_out(question.limits),
                 "--in-flight looks at all of them: --sample, --max-rate and --max-overhead do not go with it"},
            Rule{has_limit(question), "--in-flight shows so many beginnings: --max-events does not go with it"},
        });
  if (question.view.slowest == 0) return {};
  return check_rules(
      question, std::array{
                    Rule{question.view.count_only, "--slowest shows events, and --count has none"},
                    Rule{records(question), "--record takes all events: --slowest goes with its --replay"},
                    Rule{leaves_hits_out(question.limits),
                         "--slowest looks at all of them: --sample, --max-rate and --max-overhead do not go with it"},
                    Rule{has_limit(question), "--slowest shows so many events: --max-events does not go with it"},
                });
}

/// Checks what limits leave out.
Result<void> check_limits(const Question& question) {
  const AskedLimits& limits = question.limits;
  return check_rules(
      question,
      std::array{
          Rule{limits.max_overhead > 0 && limits.sample > 1, "--max-overhead and --sample: one of them"},
          Rule{limits.max_overhead > 0 && question.view.heat_map,
               "--max-overhead does not go with --heatmap, which shows when: nothing is known of some of the time"},
          Rule{limits.sample > 1 && question.view.count_only && !question.where,
               "--sample does not go with --count alone, which counts every hit: to choose among them would cost more"},
          Rule{limits.max_rate > 0 && question.view.no_events(),
               "--max-rate is about events, which --count and tables have none of; --sample makes those cheaper"},
      });
}

/// Checks what spans do not go with yet.
Result<void> check_spans(const Question& question) {
  const bool spans = !question.points.ends.empty();
  return check_rules(
      question,
      std::array{
          Rule{!spans && !question.points.pairing.begin.empty(), "--pair-by is about spans: 'A ~~ B'"},
          Rule{spans && question.view.count_only, "--count is of hits: of spans '--sum duration' has the number, too"},
          Rule{spans && !question.values.print.for_probes.empty(),
               "--print: a span has one list, of what both its ends have"},
      });
}

bool is_of_kernel(const PointPattern& pattern) { return std::holds_alternative<KernelPattern>(pattern); }

/// Checks whose hits are meant.
Result<void> check_processes(const Question& question) {
  const AskedProcesses& processes = question.processes;
  const bool some = !processes.pids.empty() || !processes.command.empty();
  return check_rules(
      question,
      std::array{
          Rule{question.stacks.kernel_depth > 0 && std::ranges::none_of(question.points.patterns, is_of_kernel),
               "--kstack, kstack in --print: no kernel function or raw tracepoint is traced, and a process at a USDT "
               "probe is not in the kernel: there is no kernel stack to show"},
          Rule{processes.children && processes.pids.empty(),
               "--children goes with -p; of a command they are traced anyway"},
          Rule{some && (!processes.cgroups.empty() || !processes.containers.empty()),
               "--cgroup and --container go with neither -p nor a command: they say themselves which processes"},
          Rule{!question.following.follow && (question.following.wait || question.following.hold_exec),
               "--no-follow goes with neither --wait nor --hold-exec"},
          Rule{!processes.pids.empty() && !processes.command.empty(), "-p and a command exclude each other"},
      });
}

}  // namespace

Result<void> check_question(const Question& question) {
  for (const auto& checked : {check_limits, check_view, check_slowest, check_spans, check_processes})
    TRY(checked(question));
  return {};
}

}  // namespace v1
}  // namespace usdt
