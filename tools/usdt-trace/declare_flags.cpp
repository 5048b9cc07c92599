// SPDX-License-Identifier: BSD-2-Clause
// Which options there are, in the order in which --help shows them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "common/command_line.hpp"
#include "raw_flags.hpp"

namespace usdt_trace {
namespace {

using usdt::tools::one_of;
using usdt::tools::process_id;
using usdt::tools::seconds;
using usdt::tools::whole_number;

using Source = usdt::HitFieldSource;

/// The words for what these know of every hit: "pid, tid".
std::string words_of(std::initializer_list<Source> sources) {
  std::vector<std::string_view> words;
  for (const usdt::HitFieldInfo& each : usdt::kHitFields)
    if (std::ranges::find(sources, each.source) != sources.end()) words.push_back(each.word);
  return fmt::format("{}", fmt::join(words, ", "));
}

constexpr const char* description =
    "Shows the values that running programs pass at their USDT probes and functions, and the kernel at its functions.\n"
    "PROBE is usdt:PATH:PROVIDER:NAME, PATH:PROVIDER:NAME or PROVIDER:NAME; PATH may be a soname; globs "
    "anywhere.\n"
    "Functions of programs are uprobe:PATH:FUNCTION at their entry, uretprobe at their return, ucall both in one "
    "event; a line of their source is uprobe:PATH:@FILE:LINE.\n"
    "In the kernel it is PREFIX:FUNCTION or PREFIX:MODULE:FUNCTION. At the entry of a function: kfunc, "
    "kprobe, fentry; at its return: kretfunc, kretprobe, fexit; both in one event: kcall, ksession, "
    "fsession (kfunc, kretfunc and kcall by whatever is cheapest here). Raw tracepoints: raw_tp, "
    "tp_btf.\n"
    "A span, 'PROBE ~~ PROBE', is one event from a hit of the first to one of the second, with how long it took.\n"
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
    "  usdt-trace 'postgresql:*' --record pg.rec; usdt-trace --replay pg.rec --where 'pid == 1234'\n"
    "  usdt-trace kcall:vfs_read --hist duration --by comm -- cat /etc/hostname\n"
    "  usdt-trace 'python:gc__start ~~ python:gc__done' --where 'duration > 1ms'\n"
    "  usdt-trace 'python:gc__start ~~ python:gc__done' --latency --by comm\n"
    "  usdt-trace ucall:libc.so.6:malloc --slowest 3 --print 'arg0, retval' -- ls\n"
    "  usdt-trace ucall:libc.so.6:malloc --hist arg0 --sample 1/100 -- ls\n"
    "A command runs under the tracer, and its children are traced with it. When it ends, so does the "
    "trace, with its exit code. Where the trace ends first (-M, -d, Ctrl-C, nobody reads its output), "
    "the command and all processes it started are ended: SIGTERM, after 2 seconds SIGKILL.\n"
    "Exit code: the command's own (128 + signal), or 0 if the trace ended first; 1 run-time failure, "
    "output that could not be written included; 2 wrong usage; 3 with --strict when events were lost or "
    "a value was unreadable.";

/// Which hits are meant, and what is shown of each.
void declare_question(CLI::App& app, Flags& flags, RawFlags& raw) {
  app.add_option("probe", raw.probes, "Probes to trace")->type_name("PROBE");
  app.add_option("-p,--pid", flags.question.processes.pids, "Only these processes, at most 64; until all have ended")
      ->check(process_id())
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("PID[,PID]");
  app.add_option(
         "--print", raw.prints,
         "What to show: argN, str(argN), str(argN, argM) of the length argM, hex(argN), ntop(argN) of an IPv4 address, "
         "ntop(argN, 16) or ntop(argN, 4) of one that it points to, buf(argN, 32) and buf(argN, argM) of bytes, "
         "of functions names as well "
         "(count, str(filename)), retval, and what they lead to (req->peer.port, *p, a[2], ((struct foo *)arg1)->x, "
         "sizeof(struct foo)), " +
             words_of({Source::hit, Source::owner, Source::clock, Source::site, Source::stack}) +
             " (args.pid: an argument of that name); PROBE=LIST: of these probes. Default: every argument")
      ->allow_extra_args(false)
      ->type_name("[PROBE=]LIST");
  app.add_option(
         "--format-string", raw.format_string,
         "Lines of your own: printf's directives, which take the values of --print in their order ('%s took %d'), "
         "%{NAME} for time, nsecs, pid, tid, cpu, comm, probe and duration, or for a value in place "
         "('%-16{comm} %{str(arg0)} %{elapsed}')")
      ->allow_extra_args(false)
      ->type_name("FORMAT");
  app.add_option(
         "--where", raw.where,
         "Only hits for which this holds, which the kernel finds out: C's operators over arguments and what "
         "they lead to, " +
             words_of({Source::hit, Source::owner}) + " (of spans those of the beginning), " +
             words_of({Source::clock, Source::site}) +
             ", "
             "numbers (10ms, 4KiB), texts (==, !=, =~ \"SELECT*FROM*\", str(argN, argM) of the length argM), in {1, 2}")
      ->allow_extra_args(false)
      ->type_name("EXPR");
  app.add_option("--pair-by", raw.pair_by,
                 "What a hit that ends a span and the one that begins it have in common: expressions as --where has "
                 "them, with commas, for both or 'KEYS ~~ KEYS'. Default: tid, the thread")
      ->allow_extra_args(false)
      ->type_name("KEYS");
  app.add_option("--depth", flags.question.values.depth, "Structs within structs shown with their members (default 1)")
      ->check(whole_number(0, 8))
      ->allow_extra_args(false)
      ->type_name("N");
  app.add_option("--strings", raw.strings,
                 "Arguments that point to what is plainly text: auto shows the text behind the number (as text output "
                 "does by default, and JSON does not), never only the number")
      ->check(one_of({"auto", "never"}))
      ->type_name("WHEN");
}

/// How much is too much.
void declare_limits(CLI::App& app, Flags& flags, RawFlags& raw) {
  app.add_option("-M,--max-events", flags.question.limits.max_events, "Stop after N events")
      ->check(whole_number(1, UINT64_MAX - 1))
      ->type_name("N");
  app.add_option("-d,--duration", flags.question.limits.seconds, "Stop after TIME: 10 (seconds), 500ms, 5m")
      ->transform(seconds())
      ->type_name("TIME");
  app.add_option("--sample", raw.sample,
                 "Look at one in N hits only, chosen by chance; counts and sums are multiplied by N, and are estimates "
                 "then. Calls and spans are left out as a whole")
      ->type_name("1/N");
  app.add_option("--max-rate", raw.max_rate, "At most N events a second; how many were held back is told at the end")
      ->type_name("N/s");
  app.add_option(
         "--max-overhead", raw.max_overhead,
         "Slow the traced processes down by at most so many percent of their own processor time: what is hit too "
         "often is detached and attached again, some tenths of a second every one or two; counts are estimates "
         "then, and events say how many they stand for")
      ->type_name("PERCENT");
}

/// Where events go to, and come from.
void declare_files(CLI::App& app, Flags& flags, RawFlags& raw) {
  app.add_option("-o,--output", flags.output.file, "Write to FILE instead of standard output")->type_name("FILE");
  app.add_option(
         "--record", flags.question.recording.file,
         "Write the events to FILE, compressed, instead of showing them (with -o both): --replay shows them, in "
         "any way they could have been shown, on any machine; what was written can be read however it ends")
      ->type_name("FILE");
  app.add_option("--last", raw.last,
                 "With --record: keep only the events of the last while (10s), in at most 256 MiB of memory, and write "
                 "them when the trace ends")
      ->type_name("TIME");
  app.add_option("--dump-on", raw.dump_on,
                 "With --last: end the trace when this holds for an event (as --where has it), or on SIGUSR1 (signal); "
                 "exit: not before it ends by itself")
      ->allow_extra_args(false)
      ->type_name("EXPR|signal|exit");
  app.add_option("--replay", flags.question.recording.replay,
                 "Show what --record wrote to FILE, as if it happened now: with --print, --where, --count, --format, "
                 "--max-events")
      ->type_name("FILE");
  app.add_option(
         "--script", flags.script.file,
         "Ask the questions of a TOML file, all at once (docs/scripts.md); beside it only options that are about "
         "all of them: -p, -d, -f, -o, --replay, --explain and their like")
      ->type_name("FILE");
}

void declare_form(CLI::App& app, Flags& flags, RawFlags& raw) {
  app.add_option("-f,--format", raw.format, "text, json (one object a line) or csv (values with commas between them)")
      ->check(one_of({"text", "json", "csv"}))
      ->type_name("FORMAT");
  app.add_option("-Z,--string-size", flags.question.values.string_size, "Longest string in bytes")
      ->check(whole_number(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--ring-size", flags.question.attaching.ring_megabytes, "Event ring in MiB")
      ->check(whole_number(1, 1024))
      ->type_name("MIB")
      ->capture_default_str();
}

/// Whose hits are meant beside those of the processes that are there.
void declare_following(CLI::App& app, Flags& flags) {
  app.add_flag("--children", flags.question.processes.children,
               "With -p: their children, and the children of those, as well");
  app.add_flag("!--no-follow", flags.question.following.follow,
               "Only what is there when the trace begins: no libraries that are opened later, no probes that are made "
               "at run time, no file that takes the place of another; with a command: only its own process, not its "
               "children");
  app.add_flag("--wait", flags.question.following.wait,
               "Where nothing matches yet, wait until a file that does is there or is mapped by a process");
  app.add_option("--cgroup", flags.question.processes.cgroups,
                 "Only processes in this cgroup (v2) and below it, whoever comes and goes: a path below where cgroups "
                 "are mounted, or as /proc/PID/cgroup has it")
      ->allow_extra_args(false)
      ->type_name("PATH");
  app.add_option("--container", flags.question.processes.containers,
                 "The same of a container of docker, podman, containerd or cri-o: its id, or how that begins")
      ->allow_extra_args(false)
      ->type_name("ID");
  app.add_flag("--hold-exec", flags.question.following.hold_exec,
               "Hold each program that the traced ones start, or with neither -p nor a command anybody, until it is "
               "traced: none of its hits is missed. A second at most; nothing stays held when this ends");
  app.add_option("--max-followed", flags.question.following.max_followed,
                 "Files that came since the trace began, at most N at once; those that are gone make room for others")
      ->check(whole_number(1, usdt::Tracer::kMostAdditions))
      ->type_name("N")
      ->capture_default_str();
}

void declare_notices(CLI::App& app, Flags& flags) {
  app.add_flag("--strict", flags.strict,
               "Exit with 3 if events were lost, hits missed, or a value asked for was unreadable");
  app.add_flag("--skip-unknown", flags.question.points.skip_unknown,
               "Go on without kernel functions and raw tracepoints that this kernel does not have");
  app.add_flag("-q,--quiet", flags.output.quiet, "No notices but errors and the loss line");
  app.add_flag("-v,--verbose", flags.output.verbose, "Tell how sites are attached and how specs reach the BPF program");
}

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names{kAuto};
  for (const usdt::Backend backend : usdt::choosable_backends()) names.push_back(to_string(backend));
  return names;
}

std::vector<std::string_view> carrier_names() {
  using usdt::Carrier;
  std::vector<std::string_view> names{kAuto};
  for (const Carrier carrier : {Carrier::cookie, Carrier::table, Carrier::per_link, Carrier::ip_hash})
    names.push_back(to_string(carrier));
  return names;
}

void declare_backend(CLI::App& app, RawFlags& raw) {
  app.add_option("--backend", raw.backends,
                 "How to attach: uprobe_multi, perf_uprobe; in the kernel: kprobe_multi, kprobe_session, "
                 "perf_kprobe, tracing_multi, tracing, raw_tp, tp_btf. Default: the best there is")
      ->check(one_of(backend_names()))
      ->allow_extra_args(false)
      ->type_name("NAME");
}

void declare_stacks(CLI::App& app, Flags& flags, RawFlags& raw) {
  app.add_option("--kstack", flags.question.stacks.kernel_depth,
                 "Show the kernel's stack, at most N functions of it (16)")
      ->check(whole_number(1, 127))
      ->type_name("N");
  app.add_option(
         "--ustack", raw.user_stack,
         "Show the stack of the process, at most N functions of it (32). Callers are found by the unwind "
         "information of the files (dwarf) or by frame pointers (fp): smaller events, but many programs keep none")
      ->type_name("[dwarf|fp][,N]");
  app.add_option("--ustack-size", flags.question.stacks.user_kilobytes,
                 "How much of the stack --ustack=dwarf copies at each hit: 4 to 64, a multiple of 4")
      ->check(whole_number(4, 64))
      ->type_name("KIB")
      ->capture_default_str();
}

/// What is made of hits in the kernel, so that none of them becomes an event.
void declare_view(CLI::App& app, usdt::ViewText& raw) {
  app.add_option(
         "--by", raw.by,
         "Count the hits that have the same: expressions as --where has them, texts, probe, name, provider, ip, "
         "hex(EXPR), ntop(EXPR) of an IPv4 address, and the stacks of the "
         "process (ustack) and of the kernel (kstack), found by frame pointers; with commas")
      ->type_name("KEYS")
      ->allow_extra_args(false);
  const auto value = [&](const char* name, std::string& text, const char* what) {
    app.add_option(name, text, what)->type_name("EXPR")->allow_extra_args(false);
  };
  value("--sum", raw.sum, "Of each row of --by the sum of an expression; without --by of all hits");
  value("--avg", raw.average, "The same of its average");
  value("--min", raw.minimum, "The same of its smallest value, which may be a real");
  value("--max", raw.maximum, "The same of its largest value, likewise");
  value("--distinct", raw.distinct, "How many different values an expression has");
  value("--hist", raw.log2, "How often an expression was in each range from one power of 2 to the next");
  app.add_option("--hist-detail", raw.sub_bits,
                 "Ranges of --hist and --heatmap for each power of 2, as a power of 2 of their own")
      ->check(whole_number(0, 4))
      ->type_name("N");
  app.add_option("--lhist", raw.linear,
                 "The same in ranges of equal width: 'size:0:4096:256', of reals 'load:0:1:0.05'")
      ->type_name("EXPR:FROM:TO:STEP")
      ->allow_extra_args(false);
  value("--heatmap", raw.heat_map,
        "The same as --hist by time, a stretch of --interval (1) beside the other: as a picture, or JSON rows");
  app.add_flag("--latency", raw.latency,
               "Of spans and calls: how many, the percentiles of their durations (at most 1/16 too large) and the "
               "largest; with --by by its keys");
  app.add_option("--slowest", raw.slowest,
                 "Of spans and calls only the N that took longest, with the values of both ends, the slowest first; "
                 "the kernel hands over no others but those that were among them for a while")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  app.add_option("--in-flight", raw.in_flight,
                 "Of spans and calls the N (100 if it is left out) that have begun and not ended, the oldest first, "
                 "with what was known then: "
                 "at the end, and each --interval")
      ->check(whole_number(1, 1000))
      ->type_name("N");
  app.add_flag("--folded", raw.folded,
               "One line for each stack, as programs that draw flame graphs take them: 'comm;main;serve 17'. The keys "
               "are those of --by, 'comm, ustack' by default, and of hits in the kernel 'comm, ustack, kstack'");
  app.add_option("--top", raw.top, "Only the N rows with the largest numbers")
      ->check(whole_number(1, UINT32_MAX))
      ->type_name("N");
  app.add_option(
         "--max-rows", raw.max_rows,
         "Room for so many rows, of histograms for so many ranges; hits of further ones are counted as table_full")
      ->check(whole_number(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--rate", raw.rate,
               "Hits a second of each row, those with most first: with --interval since the table before, at the end "
               "of the whole trace");
  app.add_option("--interval", raw.interval,
                 "Show the table, or what is slowest or in flight, so far each TIME: 2 (seconds), 500ms, 1m")
      ->transform(seconds())
      ->type_name("TIME");
}

void declare_pages(CLI::App& app, RawFlags& raw) {
  app.add_flag("--wait-for-pages", raw.wait_for_pages,
               "Where an argument is paged out, let the traced program wait until it is in: the default with -p and a "
               "command, but not of everybody's, since who maps a page decides how long that takes");
  app.add_flag("--no-wait-for-pages", raw.no_wait_for_pages, "Say instead that it could not be read")
      ->excludes("--wait-for-pages");
}

/// How values get to the BPF programs, and other details of them.
void declare_programs(CLI::App& app, Flags& flags, RawFlags& raw) {
  app.add_option("--carrier", raw.carrier,
                 "How a site's argument spec reaches the BPF program: auto, cookie, table, "
                 "per-link or ip-hash")
      ->check(one_of(carrier_names()))
      ->type_name("NAME");
  app.add_option("--max-programs", flags.question.attaching.max_programs,
                 "Most BPF programs to load for --carrier per-link and ip-hash")
      ->check(whole_number(1, 4096))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--explain", flags.explain,
               "Trace nothing: say what would be attached and how, what would be read at each hit and about what it "
               "would cost; for that no privilege is needed");
  app.add_option("--verifier-log", flags.verifier_log, "Should the kernel's verifier refuse a program: its whole log")
      ->type_name("FILE");
  app.add_option("--disable-feature", raw.disabled, "Do without a kernel feature, to try its fallback")
      ->type_name("NAME");
  app.add_flag("--allow-unsafe-nop5", flags.question.attaching.allow_unsafe_nop5,
               "Attach to bare nop5 sites although this kernel may then corrupt the program's red zone");
}

}  // namespace

namespace {

/// Declares options, which --help shows under the heading `name`.
template <class Declare>
void group(CLI::App& app, const char* name, const Declare& declare_them) {
  const std::size_t before = app.get_options().size();
  declare_them();
  const std::vector<CLI::Option*> all = app.get_options();
  for (std::size_t i = before; i < all.size(); ++i)
    if (!all[i]->get_positional()) all[i]->group(name);
}

}  // namespace

const usdt::tools::BriefHelp& brief_help() {
  static const usdt::tools::BriefHelp help{
      .usage = "usdt-trace [OPTIONS] PROBE ... [-- COMMAND ARGUMENTS]",
      .description =
          "Shows the values that running programs pass at their USDT probes and functions, and the kernel at "
          "its functions. PROBE: PROVIDER:NAME of a USDT probe, ucall:FILE:FUNCTION, kcall:FUNCTION of the "
          "kernel, and others; usdt-list shows which there are.",
      .options = {{"-p PID", "Trace these processes; a COMMAND is traced with all it starts; else everybody is"},
                  {"--print LIST", "What to show: 'str(arg0), retval, req->peer.port'; every argument unless told"},
                  {"--where EXPR", "Which hits: 'duration > 10ms && comm == \"nginx\"'"},
                  {"--count", "Only how many hits each probe had"},
                  {"--by KEYS", "A table of hits with equal keys: 'comm, str(arg0)', 'ustack'"},
                  {"--hist EXPR", "A histogram: of 'duration', of 'arg1'"},
                  {"--latency", "Percentiles of what calls, and spans 'A ~~ B', took"},
                  {"--ustack", "Each event with the stack of the process"},
                  {"--record FILE", "Write the events to a file, which --replay FILE shows in any way"},
                  {"-d TIME", "Stop after a while: 10 (seconds), 500ms, 5m"}},
      .examples =
          "Examples:\n"
          "  usdt-trace ucall:libc.so.6:getenv --print 'str(arg0), retval' -- ls\n"
          "  usdt-trace kcall:vfs_read --hist duration --by comm -d 5\n"
          "  usdt-trace -p 1234 'postgresql:query__start' --print 'str(arg0)'\n"};
  return help;
}

void declare(CLI::App& app, Flags& flags, RawFlags& raw) {
  app.name("usdt-trace");
  app.description(description);
  app.footer(examples);
  app.set_help_flag("-h,--help", "Print what is needed most; '--help all' prints all of this, '--help GROUP' a part");
  app.set_version_flag("-V,--version", "usdt-trace " USDT_VERSION);
  group(app, "Values and questions", [&] {
    declare_question(app, flags, raw);
    declare_stacks(app, flags, raw);
  });
  group(app, "Tables and histograms", [&] {
    app.add_flag("-c,--count", raw.view.count, "No events, but a table of hits at the end");
    declare_view(app, raw.view);
  });
  group(app, "Limits", [&] { declare_limits(app, flags, raw); });
  group(app, "Files and formats", [&] {
    declare_files(app, flags, raw);
    declare_form(app, flags, raw);
  });
  group(app, "Processes", [&] { declare_following(app, flags); });
  group(app, "Functions", [&] { usdt::tools::declare(app, raw.functions); });
  group(app, "Notices", [&] { declare_notices(app, flags); });
  group(app, "Attaching", [&] {
    declare_backend(app, raw);
    declare_pages(app, raw);
    declare_programs(app, flags, raw);
  });
  app.get_option("--pid")->group("Processes");
}

}  // namespace usdt_trace
