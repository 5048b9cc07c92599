// SPDX-License-Identifier: BSD-2-Clause
#include "flags_together.hpp"

#include <algorithm>
#include <array>

#include "wrong_usage.hpp"

namespace usdt_trace {
namespace {

/// What does not go together, and whether it is asked for.
struct Rule {
  bool broken = false;
  const char* why = "";
};

template <std::size_t N>
usdt::Result<void> check(const std::array<Rule, N>& rules) {
  const auto broken = std::ranges::find(rules, true, &Rule::broken);
  return broken == rules.end() ? usdt::Result<void>() : wrong(broken->why);
}

bool is_of_kernel(const usdt::PointPattern& pattern) { return std::holds_alternative<usdt::KernelPattern>(pattern); }

bool has_limit(const Flags& flags) { return flags.max_events != UINT64_MAX; }
bool has_stacks(const Flags& flags) { return flags.kernel_stack_depth > 0 || flags.user_stack_depth > 0; }
bool records(const Flags& flags) { return !flags.record.empty(); }

/// Of what is shown instead of events.
usdt::Result<void> check_view(const Flags& flags, const RawFlags& raw) {
  const usdt::View& view = flags.view;
  const bool none = flags.no_events();
  const bool replays = !flags.replay.empty();
  const bool csv = flags.format == Format::csv;
  // A live table is looked at some 20 times a second; the events of a recording have their own times.
  constexpr double shortest = 0.1;
  return check(std::array{
      Rule{replays && view.interval && !view.heat_map,
           "--interval does not go with --replay but for --heatmap: a table of it is of all of a recording"},
      Rule{view.folded && flags.format == Format::json, "--folded is text: JSON has the stacks anyway"},
      Rule{csv && (view.folded || !flags.format_string.empty()),
           "--format csv has columns: --folded and --format-string are lines of their own"},
      Rule{csv && !flags.print.for_probes.empty(),
           "--format csv has the same columns for all probes: one --print LIST"},
      Rule{csv && !flags.question.empty(), "--format csv is of one question: those of a script have different columns"},
      Rule{view.heat_map && !replays && *view.interval < shortest,
           "--heatmap: of less than 100 ms a live trace does not know what came when; --record and --replay do"},
      Rule{flags.count_only && records(flags), "--count has no events to record"},
      Rule{none && (!flags.print.empty() || !raw.strings.empty() || has_stacks(flags) || has_limit(flags)),
           "--count shows no events, nor do tables: --print, --strings, --kstack, --ustack and --max-events do not go "
           "with them"},
      Rule{none && !flags.format_string.empty(), "--format-string is of events: --count and tables show none"},
      Rule{view.question && records(flags), "--record is of events, and a table has none"},
      Rule{view.interval && !view.question && view.slowest == 0,
           "--interval is about a table (see --by, --sum and --hist), --slowest or --in-flight"},
  });
}

/// Of what leaves events out, and what wants all of them.
usdt::Result<void> check_slowest(const Flags& flags) {
  if (flags.view.slowest == 0) return {};
  if (flags.view.in_flight)
    return check(std::array{
        Rule{flags.count_only, "--in-flight shows beginnings, and --count keeps none"},
        Rule{records(flags) || !flags.replay.empty(), "--in-flight: a recording has no beginnings without an end"},
        Rule{flags.sample > 1 || flags.max_rate > 0 || flags.max_overhead > 0,
             "--in-flight looks at all of them: --sample, --max-rate and --max-overhead do not go with it"},
        Rule{has_limit(flags), "--in-flight shows so many beginnings: --max-events does not go with it"},
    });
  return check(std::array{
      Rule{flags.count_only, "--slowest shows events, and --count has none"},
      Rule{records(flags), "--record takes all events: --slowest goes with its --replay"},
      Rule{flags.sample > 1 || flags.max_rate > 0 || flags.max_overhead > 0,
           "--slowest looks at all of them: --sample, --max-rate and --max-overhead do not go with it"},
      Rule{has_limit(flags), "--slowest shows so many events: --max-events does not go with it"},
  });
}

/// Of spans, which do not go with some of it yet.
usdt::Result<void> check_spans(const Flags& flags, const RawFlags& raw) {
  const bool spans = !flags.ends.empty();
  return check(std::array{
      Rule{!spans && !raw.pair_by.empty(), "--pair-by is about spans: 'A ~~ B'"},
      Rule{spans && flags.count_only, "--count is of hits: of spans '--sum duration' has the number, too"},
      Rule{spans && !flags.print.for_probes.empty(), "--print: a span has one list, of what both its ends have"},
  });
}

/// Of whose hits are meant.
usdt::Result<void> check_processes(const Flags& flags) {
  const bool some = !flags.pids.empty() || !flags.command.empty();
  return check(std::array{
      Rule{flags.kernel_stack_depth > 0 && std::ranges::none_of(flags.patterns, is_of_kernel),
           "--kstack, kstack in --print: no kernel function or raw tracepoint is traced, and a process at a USDT probe "
           "is not in the "
           "kernel: there is no kernel stack to show"},
      Rule{flags.children && flags.pids.empty(), "--children goes with -p; of a command they are traced anyway"},
      Rule{some && (!flags.cgroups.empty() || !flags.containers.empty()),
           "--cgroup and --container go with neither -p nor a command: they say themselves which processes"},
      Rule{!flags.follow && (flags.wait || flags.hold_exec), "--no-follow goes with neither --wait nor --hold-exec"},
      Rule{!flags.pids.empty() && !flags.command.empty(), "-p and a command exclude each other"},
  });
}

}  // namespace

bool all_in_kernel(const Flags& flags) {
  return !flags.patterns.empty() && std::ranges::all_of(flags.patterns, is_of_kernel);
}

usdt::Result<void> check_together(const Flags& flags, const RawFlags& raw) {
  if (auto sense = check_view(flags, raw); !sense) return sense;
  if (auto sense = check_slowest(flags); !sense) return sense;
  if (auto sense = check_spans(flags, raw); !sense) return sense;
  return check_processes(flags);
}

}  // namespace usdt_trace
