// SPDX-License-Identifier: BSD-2-Clause
#include "flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include "common/command_line.hpp"
#include "common/report.hpp"
#include "raw_flags.hpp"
#include "script_flags.hpp"

namespace usdt_trace {
namespace {

using usdt::tools::one_of;
using usdt::tools::process_id;
using usdt::tools::seconds;
using usdt::tools::whole_number;

constexpr int usage_error = 2;

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

/// What is made of hits in the kernel, so that none of them becomes an event.
void declare_view(CLI::App& app, RawView& raw) {
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
  app.add_option("--lhist", raw.linear, "The same in ranges of equal width: 'size:0:4096:256'")
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
  app.add_option("--interval", raw.interval,
                 "Show the table, or what is slowest, so far each TIME: 2 (seconds), 500ms, 1m")
      ->transform(seconds())
      ->type_name("TIME");
}

}  // namespace

void declare(CLI::App& app, Flags& flags, RawFlags& raw) {
  app.footer(examples);
  app.set_version_flag("-V,--version", "usdt-trace " USDT_VERSION);
  app.add_option("probe", raw.probes, "Probes to trace")->type_name("PROBE");
  app.add_option("-p,--pid", flags.pids, "Only these processes, at most 64; until all have ended")
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
         "sizeof(struct foo)), pid, tid, comm, cpu, nsecs, elapsed, duration, provider, name, probe, ip (args.pid: an "
         "argument of that name); PROBE=LIST: of these probes. Default: every argument")
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
         "they lead to, pid, tid, comm, cpu, uid, gid, cgroup (of spans those of the beginning), nsecs, elapsed, "
         "duration, "
         "provider, name, probe, ip, "
         "numbers (10ms, 4KiB), texts (==, !=, =~ \"SELECT*FROM*\", str(argN, argM) of the length argM), in {1, 2}")
      ->allow_extra_args(false)
      ->type_name("EXPR");
  app.add_option("--pair-by", raw.pair_by,
                 "What a hit that ends a span and the one that begins it have in common: expressions as --where has "
                 "them, with commas, for both or 'KEYS ~~ KEYS'. Default: tid, the thread")
      ->allow_extra_args(false)
      ->type_name("KEYS");
  app.add_option("--depth", flags.depth, "Structs within structs shown with their members (default 1)")
      ->check(whole_number(0, 8))
      ->allow_extra_args(false)
      ->type_name("N");
  app.add_option("--strings", raw.strings,
                 "Arguments that point to what is plainly text: auto shows the text behind the number (as text output "
                 "does by default, and JSON does not), never only the number")
      ->check(one_of({"auto", "never"}))
      ->type_name("WHEN");
  app.add_option("-M,--max-events", flags.max_events, "Stop after N events")
      ->check(whole_number(1, UINT64_MAX - 1))
      ->type_name("N");
  app.add_option("-d,--duration", flags.duration_seconds, "Stop after TIME: 10 (seconds), 500ms, 5m")
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
  app.add_option("-o,--output", flags.output, "Write to FILE instead of standard output")->type_name("FILE");
  app.add_option(
         "--record", flags.record,
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
  app.add_option("--replay", flags.replay,
                 "Show what --record wrote to FILE, as if it happened now: with --print, --where, --count, --format, "
                 "--max-events")
      ->type_name("FILE");
  app.add_option(
         "--script", flags.script,
         "Ask the questions of a TOML file, all at once (docs/scripts.md); beside it only options that are about "
         "all of them: -p, -d, -f, -o, --replay, --explain and their like")
      ->type_name("FILE");
  app.add_option("-f,--format", raw.format, "text or json (one object a line)")
      ->check(one_of({"text", "json"}))
      ->type_name("FORMAT");
  app.add_option("-Z,--string-size", flags.string_size, "Longest string in bytes")
      ->check(whole_number(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--ring-size", flags.ring_megabytes, "Event ring in MiB")
      ->check(whole_number(1, 1024))
      ->type_name("MIB")
      ->capture_default_str();
  app.add_flag("--children", flags.children, "With -p: their children, and the children of those, as well");
  app.add_flag("!--no-follow", flags.follow,
               "Only what is there when the trace begins: no libraries that are opened later, no probes that are made "
               "at run time, no file that takes the place of another; with a command: only its own process, not its "
               "children");
  app.add_flag("--wait", flags.wait,
               "Where nothing matches yet, wait until a file that does is there or is mapped by a process");
  app.add_option("--cgroup", flags.cgroups,
                 "Only processes in this cgroup (v2) and below it, whoever comes and goes: a path below where cgroups "
                 "are mounted, or as /proc/PID/cgroup has it")
      ->allow_extra_args(false)
      ->type_name("PATH");
  app.add_option("--container", flags.containers,
                 "The same of a container of docker, podman, containerd or cri-o: its id, or how that begins")
      ->allow_extra_args(false)
      ->type_name("ID");
  app.add_flag("--hold-exec", flags.hold_exec,
               "Hold each program that the traced ones start, or with neither -p nor a command anybody, until it is "
               "traced: none of its hits is missed. A second at most; nothing stays held when this ends");
  usdt::tools::declare(app, raw.functions);
  app.add_flag("--strict", flags.strict,
               "Exit with 3 if events were lost, hits missed, or a value asked for was unreadable");
  app.add_flag("--skip-unknown", flags.skip_unknown,
               "Go on without kernel functions and raw tracepoints that this kernel does not have");
  app.add_flag("-q,--quiet", flags.quiet, "No notices but errors and the loss line");
  app.add_flag("-v,--verbose", flags.verbose, "Tell how sites are attached and how specs reach the BPF program");
  app.add_option("--backend", raw.backends,
                 "How to attach: uprobe_multi, perf_uprobe; in the kernel: kprobe_multi, kprobe_session, "
                 "perf_kprobe, tracing_multi, tracing, raw_tp, tp_btf. Default: the best there is")
      ->check(one_of({"auto", "uprobe_multi", "perf_uprobe", "kprobe_multi", "kprobe_session", "perf_kprobe",
                      "tracing_multi", "tracing", "raw_tp", "tp_btf"}))
      ->allow_extra_args(false)
      ->type_name("NAME");
  app.add_option("--kstack", flags.kernel_stack_depth, "Show the kernel's stack, at most N functions of it (16)")
      ->check(whole_number(1, 127))
      ->type_name("N");
  app.add_option(
         "--ustack", raw.user_stack,
         "Show the stack of the process, at most N functions of it (32). Callers are found by the unwind "
         "information of the files (dwarf) or by frame pointers (fp): smaller events, but many programs keep none")
      ->type_name("[dwarf|fp][,N]");
  app.add_option("--ustack-size", flags.user_stack_kilobytes,
                 "How much of the stack --ustack=dwarf copies at each hit: 4 to 64, a multiple of 4")
      ->check(whole_number(4, 64))
      ->type_name("KIB")
      ->capture_default_str();
  app.add_flag("-c,--count", flags.count_only, "No events, but a table of hits at the end");
  declare_view(app, raw.view);
  app.add_flag("--wait-for-pages", raw.wait_for_pages,
               "Where an argument is paged out, let the traced program wait until it is in: the default with -p and a "
               "command, but not of everybody's, since who maps a page decides how long that takes");
  app.add_flag("--no-wait-for-pages", raw.no_wait_for_pages, "Say instead that it could not be read")
      ->excludes("--wait-for-pages");
  app.add_option("--carrier", raw.carrier,
                 "How a site's argument spec reaches the BPF program: auto, cookie, table, "
                 "per-link or ip-hash")
      ->check(one_of({"auto", "cookie", "table", "per-link", "ip-hash"}))
      ->type_name("NAME");
  app.add_option("--max-programs", flags.max_programs, "Most BPF programs to load for --carrier per-link and ip-hash")
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
  app.add_flag("--allow-unsafe-nop5", flags.allow_unsafe_nop5,
               "Attach to bare nop5 sites although this kernel may then corrupt the program's red zone");
}

namespace {

bool is_of_kernel(const usdt::PointPattern& pattern) { return std::holds_alternative<usdt::KernelPattern>(pattern); }

/// A process named twice is meant once.
void name_once(std::vector<pid_t>& pids) {
  std::vector<pid_t> once;
  for (const pid_t pid : pids)
    if (std::ranges::find(once, pid) == once.end()) once.push_back(pid);
  pids = std::move(once);
}

/// "dwarf", "fp", "20", "fp,20"; nothing: it is none of these.
bool read_user_stack(std::string_view text, Flags& flags) {
  constexpr std::uint32_t usual = 32, most_by_frame_pointers = 127, most = 512;
  flags.user_stack_method = usdt::StackMethod::call_frame_info;
  flags.user_stack_depth = usual;
  const std::size_t comma = std::min(text.find(','), text.size());
  const std::string_view method = text.substr(0, comma);
  std::string_view number = text.substr(std::min(comma + 1, text.size()));
  if (method == "fp") {
    flags.user_stack_method = usdt::StackMethod::frame_pointers;
  } else if (method != "dwarf") {
    if (comma != text.size()) return false;
    number = text;
  }
  if (number.empty()) return comma == text.size() && !text.empty();
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), flags.user_stack_depth);
  const bool frame_pointers = flags.user_stack_method == usdt::StackMethod::frame_pointers;
  return error == std::errc() && end == number.data() + number.size() && flags.user_stack_depth > 0 &&
         flags.user_stack_depth <= (frame_pointers ? most_by_frame_pointers : most);
}

/// The whole number that `text` is between `before` and `after`, from 1 to `most`.
std::optional<std::uint32_t> number_within(std::string_view text, std::string_view before, std::string_view after,
                                           std::uint32_t most) {
  if (!text.starts_with(before)) return std::nullopt;
  text.remove_prefix(before.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || rest != after || number == 0 || number > most) return std::nullopt;
  return number;
}

/// "5", "0.5", "5%"
std::optional<double> percents(std::string_view text) {
  if (text.ends_with('%')) text.remove_suffix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number / 100;
}

/// --max-overhead, and what does not go with it.
usdt::Result<void> interpret_overhead(Flags& flags, const RawFlags& raw) {
  const auto wrong = [](std::string why) { return usdt::fail(usdt::ErrorKind::invalid_argument, std::move(why)); };
  if (raw.max_overhead.empty()) return {};
  const auto share = percents(raw.max_overhead);
  if (!share || !(*share >= usdt::TraceOptions::kLeastOverhead && *share <= usdt::TraceOptions::kMostOverhead))
    return wrong("--max-overhead: \"" + raw.max_overhead +
                 "\" is not a number of percent from 0.01 to 1000, such as 5");
  flags.max_overhead = *share;
  if (flags.sample > 1) return wrong("--max-overhead and --sample: one of them");
  if (flags.view.heat_map)
    return wrong("--max-overhead does not go with --heatmap, which shows when: nothing is known of some of the time");
  return {};
}

/// --sample, --max-rate and --max-overhead.
usdt::Result<void> interpret_guards(Flags& flags, const RawFlags& raw) {
  const auto wrong = [](std::string why) { return usdt::fail(usdt::ErrorKind::invalid_argument, std::move(why)); };
  if (!raw.sample.empty()) {
    const auto sample = number_within(raw.sample, "1/", "", usdt::TraceOptions::kMostSampled);
    if (!sample) return wrong("--sample: \"" + raw.sample + "\" is not 1/N, N up to 1000000, such as 1/100");
    flags.sample = *sample;
  }
  if (!raw.max_rate.empty()) {
    const auto rate = number_within(raw.max_rate, "", "/s", usdt::TraceOptions::kMostRate);
    if (!rate) return wrong("--max-rate: \"" + raw.max_rate + "\" is not N/s, N up to 10000000, such as 1000/s");
    flags.max_rate = *rate;
  }
  if (auto sense = interpret_overhead(flags, raw); !sense) return sense;
  if (flags.sample > 1 && flags.count_only && !flags.where)
    return wrong(
        "--sample does not go with --count alone, which counts every hit: to choose among them would cost more");
  if (flags.max_rate > 0 && flags.no_events())
    return wrong("--max-rate is about events, which --count and tables have none of; --sample makes those cheaper");
  return {};
}

/// --last and --dump-on.
usdt::Result<void> interpret_last(Flags& flags, const RawFlags& raw) {
  const auto wrong = [](std::string why) { return usdt::fail(usdt::ErrorKind::invalid_argument, std::move(why)); };
  if (raw.last.empty()) {
    if (!raw.dump_on.empty()) return wrong("--dump-on goes with --last");
    return {};
  }
  if (flags.record.empty()) return wrong("--last goes with --record FILE, which is written at the end");
  const auto time = usdt::tools::seconds_of(raw.last);
  constexpr double most = 24 * 60 * 60;
  if (!time || !(*time >= 1e-9 && *time <= most))
    return wrong("--last: \"" + raw.last + "\" is no time up to 24h, such as 10 (seconds), 500ms or 5m");
  flags.last = std::chrono::nanoseconds(std::llround(*time * 1e9));
  flags.dump_on_signal = raw.dump_on == "signal";
  if (raw.dump_on.empty() || raw.dump_on == "exit" || flags.dump_on_signal) return {};
  auto dump_on = usdt::parse_expression(raw.dump_on);
  if (!dump_on) return usdt::fail(dump_on.error().within("--dump-on"));
  flags.dump_on = std::make_shared<const usdt::Expression>(std::move(*dump_on));
  return {};
}

}  // namespace

bool goes_with_replay(std::string_view name) {
  static constexpr std::array<std::string_view, 30> allowed = {
      "replay",  "print",    "where",    "strings", "count",       "format",   "output",  "max-events",
      "strict",  "quiet",    "verbose",  "by",      "sum",         "avg",      "min",     "max",
      "hist",    "lhist",    "distinct", "top",     "hist-detail", "max-rows", "latency", "format-string",
      "heatmap", "interval", "script",   "folded",  "probe",       "slowest"};
  return std::ranges::find(allowed, name) != allowed.end();
}

namespace {

/// What is about tracing does not go with a recording.
usdt::Result<void> check_replay(const CLI::App& app, const Flags& flags) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_single_name();
    if (option->count() > 0 && !goes_with_replay(name))
      return usdt::fail(
          usdt::ErrorKind::invalid_argument,
          "--" + name + " does not go with --replay: names of probes and --where choose among its events");
  }
  if (!flags.command.empty())
    return usdt::fail(usdt::ErrorKind::invalid_argument, "a command does not go with --replay, which traces nothing");
  return {};
}

/// "A ~~ B", or "A" "~~" "B": what is before it and behind it, blanks at the ends left out.
constexpr std::string_view kTo = "~~";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

/// Where it stands alone; npos: nowhere.
std::size_t find_to(std::string_view text) {
  for (std::size_t at = text.find(kTo); at != text.npos; at = text.find(kTo, at + 1)) {
    const std::size_t behind = at + kTo.size();
    if ((at == 0 || text[at - 1] == ' ') && (behind == text.size() || text[behind] == ' ')) return at;
  }
  return text.npos;
}

/// The same of probes: where it stands alone nowhere, the first that is not in quotes, as in "A~~B".
std::size_t find_to_of_probes(std::string_view text) {
  if (const std::size_t alone = find_to(text); alone != text.npos) return alone;
  bool in_quotes = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      in_quotes = !in_quotes;
    else if (!in_quotes && text.substr(at).starts_with(kTo))
      return at;
  }
  return text.npos;
}

/// The names of where spans begin and of where they end; without spans all are among the first.
usdt::Result<std::pair<std::vector<std::string>, std::vector<std::string>>> split_probes(
    const std::vector<std::string>& words) {
  std::pair<std::vector<std::string>, std::vector<std::string>> sides;
  bool behind = false;
  const auto add = [&](std::string_view word) {
    if (!word.empty()) (behind ? sides.second : sides.first).emplace_back(word);
  };
  for (const std::string& word : words) {
    const std::size_t at = find_to_of_probes(word);
    if (at == word.npos) {
      (behind ? sides.second : sides.first).push_back(word);
      continue;
    }
    if (behind || find_to_of_probes(word.substr(at + kTo.size())) != word.npos)
      return usdt::fail(usdt::ErrorKind::invalid_argument, "'~~' twice: one trace has spans of one kind, 'A ~~ B'");
    add(trimmed(std::string_view(word).substr(0, at)));
    behind = true;
    add(trimmed(std::string_view(word).substr(at + kTo.size())));
  }
  if (behind && (sides.first.empty() || sides.second.empty()))
    return usdt::fail(usdt::ErrorKind::invalid_argument, "a span is 'A ~~ B': a probe is missing on one side");
  return sides;
}

usdt::Result<std::vector<usdt::PointPattern>> patterns_of(const std::vector<std::string>& names, const RawFlags& raw) {
  auto patterns = usdt::parse_patterns(names);
  if (!patterns) return patterns;
  if (auto applied = usdt::tools::apply(raw.functions, *patterns); !applied) return usdt::fail(applied.error());
  return patterns;
}

/// "KEYS", "KEYS ~~ KEYS".
usdt::Result<usdt::SpanPairing> parse_pairing(const std::string& text) {
  usdt::SpanPairing pairing;
  const std::size_t at = find_to(text);
  auto begin = usdt::parse_expressions(std::string_view(text).substr(0, std::min(at, text.size())));
  if (!begin) return usdt::fail(begin.error().within("--pair-by"));
  pairing.begin = std::move(*begin);
  if (at == text.npos) return pairing;
  auto end = usdt::parse_expressions(std::string_view(text).substr(at + kTo.size()));
  if (!end) return usdt::fail(end.error().within("--pair-by"));
  pairing.end = std::move(*end);
  return pairing;
}

/// What does not go with spans yet, or makes no sense of them.
usdt::Result<void> check_spans(const Flags& flags, const RawFlags& raw) {
  const auto wrong = [](const char* why) { return usdt::fail(usdt::ErrorKind::invalid_argument, why); };
  if (flags.ends.empty())
    return raw.pair_by.empty() ? usdt::Result<void>() : wrong("--pair-by is about spans: 'A ~~ B'");
  if (flags.count_only) return wrong("--count is of hits: of spans '--sum duration' has the number, too");
  if (!flags.print.for_probes.empty()) return wrong("--print: a span has one list, of what both its ends have");
  if (flags.wait) return wrong("--wait does not go with spans, whose probes have to be there when the trace begins");
  return {};
}

/// What does not go with --slowest: what leaves events out, and what wants all of them.
usdt::Result<void> check_slowest(const Flags& flags) {
  if (flags.view.slowest == 0) return {};
  const auto wrong = [](const char* why) { return usdt::fail(usdt::ErrorKind::invalid_argument, why); };
  if (flags.count_only) return wrong("--slowest shows events, and --count has none");
  if (!flags.record.empty()) return wrong("--record takes all events: --slowest goes with its --replay");
  if (flags.sample > 1 || flags.max_rate > 0 || flags.max_overhead > 0)
    return wrong("--slowest looks at all of them: --sample, --max-rate and --max-overhead do not go with it");
  if (flags.max_events != UINT64_MAX) return wrong("--slowest shows so many events: --max-events does not go with it");
  return {};
}

usdt::Result<void> interpret_probes(Flags& flags, const RawFlags& raw) {
  if (raw.probes.empty() && flags.replay.empty())
    return usdt::fail(usdt::ErrorKind::invalid_argument, "name a probe to trace; usdt-list shows which there are");
  auto sides = split_probes(raw.probes);
  if (!sides) return usdt::fail(sides.error());
  auto patterns = patterns_of(sides->first, raw);
  if (!patterns) return usdt::fail(patterns.error());
  flags.patterns = std::move(*patterns);
  auto ends = patterns_of(sides->second, raw);
  if (!ends) return usdt::fail(ends.error());
  flags.ends = std::move(*ends);
  if (raw.pair_by.empty()) return {};
  auto pairing = parse_pairing(raw.pair_by);
  if (!pairing) return usdt::fail(pairing.error());
  flags.pairing = std::move(*pairing);
  return {};
}

/// What is asked for by its size has room, however long texts may be.
void make_room(Flags& flags) {
  const auto make_room_for = [&](const PrintList& list) {
    for (const PrintItem& item : list) {
      if (item.value.steps.empty()) continue;
      const usdt::PathStep& last = item.value.steps.back();
      constexpr std::uint64_t longest_address = 16;
      const std::uint64_t size = last.kind == usdt::PathStep::Kind::bytes     ? last.index
                                 : last.kind == usdt::PathStep::Kind::address ? longest_address
                                                                              : 0;
      constexpr std::uint64_t most = 65536;
      flags.string_size = std::max(flags.string_size, static_cast<std::uint32_t>(std::min(size, most)));
    }
  };
  make_room_for(flags.print.rest);
  for (const ProbePrint& print : flags.print.for_probes) make_room_for(print.list);
}

/// --format-string, and what does not go with it.
usdt::Result<void> interpret_format(Flags& flags, const RawFlags& raw) {
  if (raw.format_string.empty()) return {};
  const auto wrong = [](const char* why) { return usdt::fail(usdt::ErrorKind::invalid_argument, why); };
  // A script does not know how it will be shown.
  const bool json = raw.format == "json";
  if (json && flags.script.empty()) return wrong("--format-string is of text: --format json has every value by itself");
  auto format = parse_format_string(raw.format_string);
  if (!format) return usdt::fail(format.error());
  if (!format->list.empty() && !flags.print.empty())
    return wrong("--format-string names its values in place (%{arg0}): --print does not go with that");
  if (!format->list.empty()) flags.print.rest = format->list;
  if (!json) flags.format_string = std::move(*format);
  return {};
}

/// --print and --format-string.
usdt::Result<void> interpret_prints(Flags& flags, const RawFlags& raw) {
  auto prints = parse_prints(raw.prints);
  if (!prints) return usdt::fail(prints.error());
  flags.print = std::move(*prints);
  if (auto formatted = interpret_format(flags, raw); !formatted) return formatted;
  make_room(flags);
  return {};
}

usdt::Result<void> interpret(Flags& flags, const RawFlags& raw) {
  name_once(flags.pids);
  if (auto named = interpret_probes(flags, raw); !named) return named;
  if (auto printed = interpret_prints(flags, raw); !printed) return printed;
  if (!raw.where.empty()) {
    auto where = usdt::parse_expression(raw.where);
    if (!where) return usdt::fail(where.error().within("--where"));
    flags.where = std::make_shared<const usdt::Expression>(std::move(*where));
  }
  if (auto last = interpret_last(flags, raw); !last) return last;
  for (const std::string& name : raw.disabled) {
    auto feature = usdt::feature_by_name(name);
    if (!feature) return usdt::fail(feature.error());
    usdt::disable_feature(*feature);
  }
  flags.debuginfod = raw.functions.debuginfod;
  if (raw.wait_for_pages || raw.no_wait_for_pages) flags.wait_for_pages = raw.wait_for_pages;
  if (!raw.user_stack.empty() && !read_user_stack(raw.user_stack, flags))
    return usdt::fail(
        usdt::ErrorKind::invalid_argument,
        "--ustack: \"" + raw.user_stack +
            "\" is neither a number up to 512, nor dwarf or fp (up to 127), nor one of these with a number: "
            "fp,20");
  if (flags.user_stack_kilobytes % 4 != 0)
    return usdt::fail(usdt::ErrorKind::invalid_argument, "--ustack-size: not a multiple of 4 KiB");
  flags.format = raw.format == "json" ? Format::json : Format::text;
  flags.likely_texts = raw.strings.empty() ? flags.format == Format::text : raw.strings == "auto";
  if (raw.carrier != "auto") {
    auto carrier = usdt::carrier_by_name(raw.carrier);
    if (!carrier) return usdt::fail(carrier.error());
    flags.carrier = *carrier;
  }
  for (const std::string& name : raw.backends) {
    if (name == "auto") continue;
    auto backend = usdt::backend_by_name(name);
    if (!backend) return usdt::fail(backend.error());
    (usdt::is_kernel(*backend) ? flags.kernel_backend : flags.backend) = *backend;
  }
  if (flags.count_only && !flags.record.empty())
    return usdt::fail(usdt::ErrorKind::invalid_argument, "--count has no events to record");
  if (flags.count_only && (!flags.print.empty() || !raw.strings.empty() || flags.kernel_stack_depth > 0 ||
                           flags.user_stack_depth > 0 || flags.max_events != UINT64_MAX))
    return usdt::fail(
        usdt::ErrorKind::invalid_argument,
        "--count shows no events: --print, --strings, --kstack, --ustack and --max-events do not go with it");
  if (!flags.replay.empty() && raw.view.interval && raw.view.heat_map.empty())
    return usdt::fail(usdt::ErrorKind::invalid_argument,
                      "--interval does not go with --replay but for --heatmap: a table of it is of all of a recording");
  RawView table = raw.view;
  if (table.folded && table.by.empty())
    table.by = !flags.patterns.empty() && std::ranges::all_of(flags.patterns, is_of_kernel) ? "comm, ustack, kstack"
                                                                                            : "comm, ustack";
  if (table.folded && flags.format == Format::json)
    return usdt::fail(usdt::ErrorKind::invalid_argument, "--folded is text: JSON has the stacks anyway");
  auto view = parse_view(table);
  if (!view) return usdt::fail(view.error());
  flags.view = std::move(*view);
  begin_at(flags, static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                             std::chrono::nanoseconds(1)));
  if (flags.view.question) flags.count_only = false;  // by its rows
  // It is looked at some 20 times a second; the events of a recording have their own times.
  constexpr double shortest = 0.1;
  if (flags.view.heat_map && flags.replay.empty() && *flags.view.interval < shortest)
    return usdt::fail(
        usdt::ErrorKind::invalid_argument,
        "--heatmap: of less than 100 ms a live trace does not know what came when; --record and --replay do");
  if (flags.no_events() && (!flags.print.empty() || !raw.strings.empty() || flags.kernel_stack_depth > 0 ||
                            flags.user_stack_depth > 0 || flags.max_events != UINT64_MAX))
    return usdt::fail(usdt::ErrorKind::invalid_argument,
                      "--count and tables show no events: --print, --strings, --kstack, --ustack and --max-events do "
                      "not go with them");
  if (auto sense = interpret_guards(flags, raw); !sense) return sense;
  if (flags.no_events() && !flags.format_string.empty())
    return usdt::fail(usdt::ErrorKind::invalid_argument, "--format-string is of events: --count and tables show none");
  if (flags.view.question && !flags.record.empty())
    return usdt::fail(usdt::ErrorKind::invalid_argument, "--record is of events, and a table has none");
  if (flags.view.interval && !flags.view.question && flags.view.slowest == 0)
    return usdt::fail(usdt::ErrorKind::invalid_argument,
                      "--interval is about a table (see --by, --sum and --hist) or --slowest");
  if (auto sense = check_slowest(flags); !sense) return sense;
  if (auto sense = check_spans(flags, raw); !sense) return sense;
  if (flags.kernel_stack_depth > 0 && std::ranges::none_of(flags.patterns, is_of_kernel))
    return usdt::fail(
        usdt::ErrorKind::invalid_argument,
        "--kstack: no kernel function or raw tracepoint is traced, and a process at a USDT probe is not in "
        "the kernel: there is no kernel stack to show");
  if (flags.children && flags.pids.empty())
    return usdt::fail(usdt::ErrorKind::invalid_argument,
                      "--children goes with -p; of a command they are traced anyway");
  if ((!flags.cgroups.empty() || !flags.containers.empty()) && (!flags.pids.empty() || !flags.command.empty()))
    return usdt::fail(usdt::ErrorKind::invalid_argument,
                      "--cgroup and --container go with neither -p nor a command: they say themselves which processes");
  if (!flags.follow && (flags.wait || flags.hold_exec))
    return usdt::fail(usdt::ErrorKind::invalid_argument, "--no-follow goes with neither --wait nor --hold-exec");
  if (!flags.pids.empty() && !flags.command.empty())
    return usdt::fail(usdt::ErrorKind::invalid_argument, "-p and a command exclude each other");
  return {};
}

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

void begin_at(Flags& flags, std::uint64_t nanoseconds) {
  flags.began = nanoseconds;
  for (auto* question : {&flags.where, &flags.dump_on}) {
    if (!*question) continue;
    auto begun = std::make_shared<usdt::Expression>(**question);
    begun->began = nanoseconds;
    *question = std::move(begun);
  }
  if (!flags.view.question) return;
  auto table = std::make_shared<usdt::TableQuestion>(*flags.view.question);
  for (usdt::Expression& key : table->keys) key.began = nanoseconds;
  if (table->value) table->value->began = nanoseconds;
  flags.view.question = std::move(table);
}

void complete_stacks(std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view next = i + 1 < words.size() ? std::string_view(words[i + 1]) : std::string_view();
    const bool method = next == "fp" || next == "dwarf" || next.starts_with("fp,") || next.starts_with("dwarf,");
    if (words[i] == "--kstack" && !is_number(next)) words[i] = "--kstack=16";
    if (words[i] == "--ustack" && !is_number(next) && !method) words[i] = "--ustack=dwarf";
  }
}

namespace {

CommandLine split(int argc, char** argv) {
  CommandLine line{.own = {argv + 1, argv + argc}, .command = {}};
  if (const auto dashes = std::find(line.own.begin(), line.own.end(), "--"); dashes != line.own.end()) {
    line.command.assign(dashes + 1, line.own.end());
    line.empty_command = line.command.empty();
    line.own.erase(dashes, line.own.end());
  }
  complete_stacks(line.own);
  return line;
}

/// "-f FILE.toml"
bool is_script_for_format(const std::vector<std::string>& words) {
  const auto option = std::ranges::find(words, "-f");
  return option != words.end() && option + 1 != words.end() && (option + 1)->ends_with(".toml");
}

}  // namespace

usdt::Result<void> interpret(const CLI::App& app, Flags& flags, const RawFlags& raw) {
  if (!flags.replay.empty())
    if (auto sense = check_replay(app, flags); !sense) return sense;
  return interpret(flags, raw);
}

std::optional<std::vector<Flags>> parse_flags(int argc, char** argv, int& exit_code) {
  const auto complain = [&](std::string_view why) {
    usdt::tools::print_notice("usdt-trace", fmt::format("{}; see --help", why));
    exit_code = usage_error;
    return std::nullopt;
  };
  CommandLine line = split(argc, argv);
  Flags flags;
  RawFlags raw;
  flags.command = line.command;
  CLI::App app(description, "usdt-trace");
  declare(app, flags, raw);
  if (is_script_for_format(line.own)) return complain("-f is --format, text or json; a script is --script FILE");
  if (const auto end = usdt::tools::parse_command_line(app, line.own, usage_error)) {
    exit_code = *end;
    return std::nullopt;
  }
  if (line.empty_command) return complain("no command behind --: it would trace every process");
  if (!flags.script.empty()) {
    auto questions = questions_of_script(app, flags, line);
    if (!questions) return complain(questions.error().message);
    return std::move(*questions);
  }
  if (auto sense = interpret(app, flags, raw); !sense) return complain(sense.error().message);
  return std::vector{std::move(flags)};
}

}  // namespace usdt_trace
