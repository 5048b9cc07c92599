// SPDX-License-Identifier: BSD-2-Clause
#include "flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include "bpftrace_words.hpp"
#include "common/command_line.hpp"
#include "common/report.hpp"
#include "flags_together.hpp"
#include "guard_flags.hpp"
#include "raw_flags.hpp"
#include "script_flags.hpp"
#include "wrong_usage.hpp"

namespace usdt_trace {
namespace {

constexpr int usage_error = 2;

/// "dwarf", "fp", "20", "fp,20"; nothing: it is none of these.
bool read_user_stack(std::string_view text, Flags& flags) {
  constexpr std::uint32_t most_by_frame_pointers = 127, most = 512;
  flags.question.stacks.user_method = usdt::StackMethod::call_frame_info;
  flags.question.stacks.user_depth = usdt::AskedStacks::kUsualUserDepth;
  const std::size_t comma = std::min(text.find(','), text.size());
  const std::string_view method = text.substr(0, comma);
  std::string_view number = text.substr(std::min(comma + 1, text.size()));
  if (method == "fp") {
    flags.question.stacks.user_method = usdt::StackMethod::frame_pointers;
  } else if (method != "dwarf") {
    if (comma != text.size()) return false;
    number = text;
  }
  if (number.empty()) return comma == text.size() && !text.empty();
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), flags.question.stacks.user_depth);
  const bool frame_pointers = flags.question.stacks.user_method == usdt::StackMethod::frame_pointers;
  return error == std::errc() && end == number.data() + number.size() && flags.question.stacks.user_depth > 0 &&
         flags.question.stacks.user_depth <= (frame_pointers ? most_by_frame_pointers : most);
}

/// --last and --dump-on.
usdt::Result<void> interpret_last(Flags& flags, const RawFlags& raw) {
  if (raw.last.empty()) {
    if (!raw.dump_on.empty()) return wrong("--dump-on goes with --last");
    return {};
  }
  if (flags.question.recording.file.empty())
    return wrong("--last goes with --record FILE, which is written at the end");
  const auto time = usdt::tools::seconds_of(raw.last);
  constexpr double most = 24 * 60 * 60;
  if (!time || !(*time >= 1e-9 && *time <= most))
    return wrong("--last: \"" + raw.last + "\" is no time up to 24h, such as 10 (seconds), 500ms or 5m");
  flags.question.recording.last = std::chrono::nanoseconds(std::llround(*time * 1e9));
  flags.dump_on_signal = raw.dump_on == "signal";
  if (raw.dump_on.empty() || raw.dump_on == "exit" || flags.dump_on_signal) return {};
  auto dump_on = usdt::parse_expression(raw.dump_on);
  if (!dump_on) return usdt::fail(dump_on.error().within("--dump-on"));
  flags.question.recording.dump_on = std::make_shared<const usdt::Expression>(std::move(*dump_on));
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

/// What does for a recording what an option does for a trace.
std::string_view instead_in_replay(std::string_view name) {
  if (name == "pid") return "--where 'pid == PID' chooses among its events";
  if (name == "ustack" || name == "kstack")
    return "events have the stacks that they were recorded with, and are shown with them";
  if (name == "rate") return "its events have times of their own, and are read at once";
  return "names of probes and --where choose among its events";
}

/// What is about tracing does not go with a recording.
usdt::Result<void> check_replay(const CLI::App& app, const Flags& flags) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_single_name();
    if (option->count() > 0 && !goes_with_replay(name))
      return wrong(fmt::format("--{} does not go with --replay: {}", name, instead_in_replay(name)));
  }
  if (!flags.question.processes.command.empty())
    return wrong("a command does not go with --replay, which traces nothing");
  return {};
}

/// A word without ':' is what people call a function in other tools, or a program that they want to have started.
usdt::Error with_hint(usdt::Error error, const std::vector<std::string>& names) {
  const auto word = std::ranges::find_if(names, [](const std::string& name) { return name.find(':') == name.npos; });
  if (word == names.end() || word->empty()) return error;
  const bool is_path = word->find('/') != word->npos;
  if (!is_path) error.message += fmt::format(", or uprobe:{} for a function", *word);
  if (is_path || usdt::find_program(*word))
    error.message += fmt::format("; a program to start goes behind the probes: -- {}", *word);
  return error;
}

/// Whose functions are looked for as the options about them say.
usdt::Result<usdt::AskedPoints> points_of(const RawFlags& raw) {
  auto points = usdt::parse_points(raw.probes);
  if (!points && points.error().kind == usdt::ErrorKind::syntax)
    return usdt::fail(with_hint(std::move(points.error()), raw.probes));
  if (!points) return points;
  for (auto* patterns : {&points->patterns, &points->ends})
    if (auto applied = usdt::tools::apply(raw.functions, *patterns); !applied) return usdt::fail(applied.error());
  return points;
}

usdt::Result<void> interpret_probes(Flags& flags, const RawFlags& raw) {
  if (raw.probes.empty() && flags.question.recording.replay.empty())
    return wrong("name a probe to trace; usdt-list shows which there are");
  if (auto answer = answer_to_bpftrace(raw.probes)) return wrong(*answer);
  auto points = points_of(raw);
  if (!points) return usdt::fail(points.error());
  points->skip_unknown = flags.question.points.skip_unknown;
  points->debuginfod = raw.functions.debuginfod;
  flags.question.points = std::move(*points);
  if (raw.pair_by.empty()) return {};
  auto pairing = usdt::parse_pairing(raw.pair_by, kOptionPrefix);
  if (!pairing) return usdt::fail(pairing.error());
  flags.question.points.pairing = std::move(*pairing);
  return {};
}

/// --format-string, and what does not go with it.
usdt::Result<void> interpret_format(Flags& flags, const RawFlags& raw) {
  if (raw.format_string.empty()) return {};
  // A script does not know how it will be shown.
  const bool json = raw.format == "json";
  if (json && flags.script.file.empty())
    return wrong("--format-string is of text: --format json has every value by itself");
  auto format = usdt::parse_format_string(raw.format_string, kOptionPrefix);
  if (!format) return usdt::fail(format.error());
  if (!format->list.empty() && !flags.question.values.print.empty())
    return wrong("--format-string names its values in place (%{arg0}): --print does not go with that");
  if (!format->list.empty()) flags.question.values.print.rest = format->list;
  if (!json) flags.question.values.format = std::move(*format);
  return {};
}

/// --print and --format-string.
usdt::Result<void> interpret_prints(Flags& flags, const RawFlags& raw) {
  auto prints = usdt::parse_prints(raw.prints, kOptionPrefix);
  if (!prints) return usdt::fail(prints.error());
  flags.question.values.print = std::move(*prints);
  if (auto formatted = interpret_format(flags, raw); !formatted) return formatted;
  return {};
}

usdt::Result<void> interpret_stacks(Flags& flags, const RawFlags& raw) {
  if (!raw.user_stack.empty() && !read_user_stack(raw.user_stack, flags))
    return wrong(
        "--ustack: \"" + raw.user_stack +
        "\" is neither a number up to 512, nor dwarf or fp (up to 127), nor one of these with a number: fp,20");
  if (flags.question.stacks.user_kilobytes % 4 != 0) return wrong("--ustack-size: not a multiple of 4 KiB");
  return {};
}

/// How sites are attached and values carried.
usdt::Result<void> interpret_programs(Flags& flags, const RawFlags& raw) {
  for (const std::string& name : raw.disabled) {
    auto feature = usdt::feature_by_name(name);
    if (!feature) return usdt::fail(feature.error());
    usdt::disable_feature(*feature);
  }
  if (raw.carrier != kAuto) {
    auto carrier = usdt::carrier_by_name(raw.carrier);
    if (!carrier) return usdt::fail(carrier.error());
    flags.question.attaching.carrier = *carrier;
  }
  for (const std::string& name : raw.backends) {
    if (name == kAuto) continue;
    auto backend = usdt::backend_by_name(name);
    if (!backend) return usdt::fail(backend.error());
    (usdt::is_kernel(*backend) ? flags.question.attaching.kernel_backend : flags.question.attaching.backend) = *backend;
  }
  if (raw.wait_for_pages || raw.no_wait_for_pages) flags.question.attaching.wait_for_pages = raw.wait_for_pages;
  return {};
}

/// What is shown instead of events. From now on "elapsed" counts.
usdt::Result<void> interpret_view(Flags& flags, const RawFlags& raw) {
  usdt::ViewText asked = raw.view;
  if (asked.folded && asked.by.empty())
    asked.by = usdt::all_in_kernel(flags.question) ? "comm, ustack, kstack" : "comm, ustack";
  auto view = usdt::parse_view(asked, kOptionPrefix);
  if (!view) return usdt::fail(view.error());
  flags.question.view = std::move(*view);
  usdt::begin_question(flags.question, usdt::event_clock());
  return {};
}

usdt::Result<void> interpret(Flags& flags, const RawFlags& raw) {
  flags.output.format = raw.format == "json" ? Format::json : raw.format == "csv" ? Format::csv : Format::text;
  flags.question.values.likely_texts =
      raw.strings.empty() ? flags.output.format == Format::text : raw.strings == "auto";
  if (!raw.where.empty()) {
    auto where = usdt::parse_expression(raw.where);
    if (!where) return usdt::fail(where.error().within("--where"));
    flags.question.where = std::make_shared<const usdt::Expression>(std::move(*where));
  }
  for (const auto& part : {interpret_probes, interpret_prints, interpret_last, interpret_stacks, interpret_programs,
                           interpret_view, interpret_guards}) {
    if (auto made = part(flags, raw); !made) return made;
  }
  usdt::complete_question(flags.question);
  return check_together(flags, raw);
}

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

void complete_stacks(std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view next = i + 1 < words.size() ? std::string_view(words[i + 1]) : std::string_view();
    const bool method = next == "fp" || next == "dwarf" || next.starts_with("fp,") || next.starts_with("dwarf,");
    if (words[i] == "--kstack" && !is_number(next))
      words[i] = fmt::format("--kstack={}", usdt::AskedStacks::kUsualKernelDepth);
    if (words[i] == "--ustack" && !is_number(next) && !method) words[i] = "--ustack=dwarf";
    if (words[i] == "--in-flight" && !is_number(next)) words[i] = "--in-flight=100";
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
  if (!flags.question.recording.replay.empty())
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
  flags.question.processes.command = line.command;
  CLI::App app;
  declare(app, flags, raw);
  if (is_script_for_format(line.own)) return complain("-f is --format, text or json; a script is --script FILE");
  if (const auto end = usdt::tools::parse_command_line(app, line.own, usage_error, &brief_help())) {
    exit_code = *end;
    return std::nullopt;
  }
  if (line.empty_command) return complain("no command behind --: it would trace every process");
  if (!flags.script.file.empty()) {
    auto questions = questions_of_script(app, flags, line);
    if (!questions) return complain(questions.error().message);
    return std::move(*questions);
  }
  if (auto sense = interpret(app, flags, raw); !sense) return complain(sense.error().message);
  return std::vector{std::move(flags)};
}

}  // namespace usdt_trace
