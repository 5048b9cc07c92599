// SPDX-License-Identifier: BSD-2-Clause
// Which options there are, in the order in which --help shows them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "common/command_line.hpp"
#include "common/version.hpp"
#include "raw_flags.hpp"

namespace usdt_trace {
namespace {

constexpr const char* description =
    "Shows the values that running programs pass at their USDT probes and functions, and the kernel at its functions.\n"
    "PROBE is, with globs anywhere:\n"
    "  [[usdt:]PATH:]PROVIDER:NAME        a USDT probe; PATH may be a soname\n"
    "  uprobe:PATH:FUNCTION               where a function of a program is entered\n"
    "  uretprobe:PATH:FUNCTION            where it returns\n"
    "  ucall:PATH:FUNCTION                both, in one event\n"
    "  uprobe:PATH:@FILE:LINE             a line of its source\n"
    "  kfunc:FUNCTION, kretfunc, kcall    the same in the kernel, by whatever is\n"
    "                                     cheapest; in one way alone: kprobe,\n"
    "                                     kretprobe, ksession, fentry, fexit,\n"
    "                                     fsession\n"
    "  kfunc:MODULE:FUNCTION              in one of its modules\n"
    "  raw_tp:NAME, tp_btf:NAME           a raw tracepoint of the kernel\n"
    "  'PROBE ~~ PROBE'                   a span: one event from a hit of the first\n"
    "                                     to one of the second, with the time it took\n"
    "usdt-list prints names that can be pasted here.";

constexpr const char* examples =
    "Examples:\n"
    "  usdt-trace usdt:/usr/bin/python3.11:python:gc__start\n"
    "  usdt-trace -p 1234 'postgresql:query__start' --print 'str(arg0)'\n"
    "  usdt-trace 'libstdcxx:throw' -- ./program --its-flag\n"
    "  usdt-trace ucall:libc.so.6:getenv --print 'str(arg0), retval' -- ls\n"
    "  usdt-trace 'uprobe:./server:@server.c:120' -- ./server\n"
    "  usdt-trace kcall:vfs_read --print 'count, retval' -- cat /etc/hostname\n"
    "  usdt-trace kcall:vfs_read --where 'duration > 1ms && comm != \"cat\"'\n"
    "  usdt-trace 'kfunc:tcp_*' --count --duration 5\n"
    "  usdt-trace 'postgresql:*' --record pg.rec\n"
    "  usdt-trace --replay pg.rec --where 'pid == 1234'\n"
    "  usdt-trace kcall:vfs_read --hist duration --by comm -- cat /etc/hostname\n"
    "  usdt-trace 'python:gc__start ~~ python:gc__done' --where 'duration > 1ms'\n"
    "  usdt-trace 'python:gc__start ~~ python:gc__done' --latency --by comm\n"
    "  usdt-trace ucall:libc.so.6:malloc --slowest 3 --print 'arg0, retval' -- ls\n"
    "  usdt-trace ucall:libc.so.6:malloc --hist arg0 --sample 1/100 -- ls\n"
    "  usdt-trace --preset heap -p 1234  # it runs with LD_PRELOAD=libusdt-heap.so\n"
    "A command runs under the tracer, and its children are traced with it. When it ends, so does the "
    "trace, with its exit code. Where the trace ends first (-M, -d, Ctrl-C, nobody reads its output), "
    "the command and all processes it started are ended: SIGTERM, after 2 seconds SIGKILL.\n"
    "Exit code: the command's own (128 + signal), or 0 if the trace ended first; 1 run-time failure, "
    "output that could not be written included; 2 wrong usage; 3 with --strict when events were lost or "
    "a value was unreadable.";

/// Names of the forms that answers are written in; `lines`: of those alone that are lines of text.
std::vector<std::string_view> names_of_formats(bool lines) {
  std::vector<std::string_view> names;
  for (const usdt::SinkFormat& format : usdt::sink_formats())
    if (format.has_lines || !lines) names.push_back(format.name);
  return names;
}

/// "csv=", before the place of a file.
std::vector<std::string> beginnings_of_exports() {
  std::vector<std::string> all;
  for (const std::string_view name : names_of_formats(false)) all.push_back(fmt::format("{}=", name));
  return all;
}

std::vector<std::string> names_of_features() {
  std::vector<std::string> all;
  for (const usdt::Feature feature : usdt::all_features()) all.emplace_back(to_string(feature));
  return all;
}

/// Writes "text (a line for each event), json (...)".
std::string describe_formats() {
  std::vector<std::string> all;
  for (const usdt::SinkFormat& format : usdt::sink_formats())
    if (format.has_lines) all.push_back(fmt::format("{} ({})", format.name, format.description));
  return fmt::format("{}", fmt::join(all, ", "));
}

/// Declares what is of the tool alone and goes before the option `next` of questions in help.
void declare_own(CLI::App& app, std::string_view next, Flags& flags, RawFlags& raw) {
  if (next == "record") {
    app.add_option("-o,--output", flags.output.shown.file, "Write to FILE instead of standard output")
        ->type_name("FILE");
  } else if (next == "string-size") {
    app.add_option(
           "--script", flags.script.file,
           "Ask the questions of a TOML file, all at once (docs/scripts.md); beside it only options that are about "
           "all of them: -p, -d, -f, -o, --replay, --explain and their like")
        ->type_name("FILE");
    app.add_option(
           "--preset", flags.script.preset,
           "Ask the questions about a program that are known by its name, or one of them: 'python', 'python.gc'; also "
           "by "
           "the name of a tool of bcc: 'gethostlatency' (usdt-list --presets); options beside it as beside --script")
        ->check(usdt::tools::as_listed_by(usdt::tools::kPresetWords))
        ->type_name("NAME[.QUESTION]");
    app.add_option("-f,--format", flags.output.shown.format, "How answers are shown: " + describe_formats())
        ->check(usdt::tools::one_of(names_of_formats(true)))
        ->type_name("FORMAT");
    app.add_option(
           "--export", raw.exports,
           fmt::format(
               "Write the answers to FILE, too, in a form of its own: {}. Where --record stands for showing them, "
               "record=FILE does not",
               fmt::join(names_of_formats(false), ", ")))
        ->allow_extra_args(false)
        ->check(usdt::tools::such_as(beginnings_of_exports()))
        ->type_name("FORMAT=FILE");
    app.add_option("--listen", raw.listen,
                   "While the trace runs, serve the numbers as metrics for Prometheus at http://ADDRESS:PORT/metrics; "
                   "without an address on this host alone")
        ->type_name("[ADDRESS:]PORT");
  } else if (next == "skip-unknown") {
    app.add_flag("--strict", flags.strict,
                 "Exit with 3 if events were lost, hits missed, or a value asked for was unreadable");
    app.add_flag("-q,--quiet", flags.output.quiet, "No notices but errors and the loss line");
    app.add_flag("-v,--verbose", flags.output.verbose,
                 "Tell how sites are attached and how specs reach the BPF program");
  } else if (next == "allow-unsafe-nop5") {
    app.add_flag("--explain", flags.explain,
                 "Trace nothing: say what would be attached and how, what would be read at each hit and about what it "
                 "would cost; for that no privilege is needed");
    app.add_flag(
        "--doctor", raw.doctor,
        "Trace nothing: say what rights tracing takes, which of them you have, and how to get the rest "
        "(usdt-list --doctor tells of the kernel, too). Exit code: 0 if you may trace, be it own processes alone "
        "through usdt-broker; else 1");
    app.add_option("--broker", flags.broker,
                   "Let usdt-broker at this socket attach, which traces own processes without privileges; where these "
                   "are missing, the one at " +
                       std::string(usdt::Broker::kSocket) + ", or of the environment's USDT_BROKER, is asked anyway")
        ->type_name("SOCKET");
    app.add_flag("--no-broker", flags.no_broker, "Never ask usdt-broker")->excludes("--broker");
    app.add_option("--verifier-log", flags.verifier_log, "Should the kernel's verifier refuse a program: its whole log")
        ->type_name("FILE");
    app.add_option("--disable-feature", raw.disabled, "Do without a kernel feature, to try its fallback")
        ->check(usdt::tools::such_as(names_of_features()))
        ->type_name("NAME");
  }
}

}  // namespace

const usdt::tools::BriefHelp& brief_help() {
  static const usdt::tools::BriefHelp help{
      .usage = "usdt-trace [OPTIONS] PROBE ... [-- COMMAND ARGUMENTS]",
      .description =
          "Shows the values that running programs pass at their USDT probes and functions, and the kernel at "
          "its functions. PROBE: PROVIDER:NAME of a USDT probe, ucall:FILE:FUNCTION, kcall:FUNCTION of the "
          "kernel, and others (--help all); usdt-list shows which there are.",
      .options = {{"-p PID", "Trace these processes; without it the COMMAND and all it starts, or else every process"},
                  {"--print LIST", "What to show: 'str(arg0), retval, req->peer.port'; by default every argument"},
                  {"--where EXPR", "Which hits: 'duration > 10ms && comm == \"nginx\"'"},
                  {"--count", "Only how many hits each probe had"},
                  {"--by KEYS", "A table of hits with equal keys: 'comm, str(arg0)', 'ustack'"},
                  {"--hist EXPR", "A histogram: of 'duration', of 'arg1'"},
                  {"--latency", "Percentiles of how long calls, or spans 'A ~~ B', took"},
                  {"--ustack", "Each event with the stack of the process"},
                  {"--record FILE", "Write the events to a file, which --replay FILE shows in any way"},
                  {"--preset NAME", "Ask what is worth asking of a known program: 'python' (usdt-list --presets)"},
                  {"-d TIME", "Stop after a while: 10 (seconds), 500ms, 5m"}},
      .examples =
          "Examples:\n"
          "  usdt-trace ucall:libc.so.6:getenv --print 'str(arg0), retval' -- ls\n"
          "  usdt-trace kcall:vfs_read --hist duration --by comm -d 5\n"
          "  usdt-trace -p 1234 'postgresql:query__start' --print 'str(arg0)'\n"
          "  usdt-trace --preset python -- python3 program.py\n"};
  return help;
}

void declare(CLI::App& app, Flags& flags, RawFlags& raw) {
  app.name("usdt-trace");
  app.description(description);
  app.footer(examples);
  app.set_help_flag("-h,--help", "Print what is needed most; '--help all' prints all of this, '--help GROUP' a part");
  app.set_version_flag("-V,--version", usdt::tools::version_text("usdt-trace"));
  app.add_option("probe", raw.probes, "Probes to trace")->type_name("PROBE");
  for (const usdt::QuestionOption& option : usdt::question_options()) {
    const std::string group(option.group);
    const std::size_t before = app.get_options().size();
    declare_own(app, option.name, flags, raw);
    raw.question.declare(app, option);
    const std::vector<CLI::Option*> all = app.get_options();
    for (std::size_t i = before; i < all.size(); ++i) all[i]->group(group);
  }
  app.get_option("--dump-on")
      ->check(usdt::tools::such_as({"signal", "exit"}))
      ->type_name("EXPR|signal|exit")
      ->description(
          "With --last: end the trace when this holds for an event (as --where has it), or on SIGUSR1 (signal); "
          "exit: not before it ends by itself");
}

}  // namespace usdt_trace
