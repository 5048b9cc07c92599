// SPDX-License-Identifier: BSD-2-Clause
#include "flags.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <utility>

#include "bpftrace_words.hpp"
#include "common/command_line.hpp"
#include "common/debug_servers.hpp"
#include "common/report.hpp"
#include "common/rights.hpp"
#include "raw_flags.hpp"
#include "script_flags.hpp"
#include "usdt/sink.hpp"
#include "wrong_usage.hpp"

namespace usdt_trace {
namespace {

constexpr int kRunTimeFailure = 1;
constexpr int kUsageError = 2;

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

/// Says what people who know other tools may have meant by the names of points.
usdt::Result<void> check_points(const std::vector<std::string>& names) {
  if (auto answer = answer_to_bpftrace(names)) return wrong(*answer);
  auto points = usdt::parse_points(names);
  if (!points && points.error().kind == usdt::ErrorKind::syntax)
    return usdt::fail(with_hint(std::move(points.error()), names));
  return {};
}

/// Options of the tool that are about tracing.
constexpr std::array<std::string_view, 4> kOfTracing = {"explain", "verifier-log", "disable-feature", "listen"};

/// The tool's own options about tracing do not go with a recording.
usdt::Result<void> check_replay(const CLI::App& app) {
  if (app.get_option("--replay")->count() == 0) return {};
  for (const std::string_view name : kOfTracing)
    if (app.get_option(fmt::format("--{}", name))->count() > 0)
      return wrong(fmt::format("--{} does not go with --replay, which traces nothing", name));
  return {};
}

}  // namespace

bool own_option_goes_with_replay(std::string_view name) {
  return std::ranges::find(kOfTracing, name) == kOfTracing.end();
}

usdt::Result<void> interpret_own(const CLI::App& app, Flags& flags, const RawFlags& raw) {
  if (auto sense = check_replay(app); !sense) return sense;
  for (const std::string& each : raw.exports) {
    const std::size_t equals = each.find('=');
    if (equals == 0 || equals == each.npos || equals + 1 == each.size())
      return wrong(fmt::format("--export: \"{}\" is not FORMAT=FILE", usdt::shown_place(each)));
    flags.output.exports.push_back({each.substr(0, equals), each.substr(equals + 1)});
  }
  if (!raw.listen.empty())
    flags.output.exports.push_back({.format = std::string(kMetricsFormat), .listen = raw.listen});
  flags.features.assumes_release = flags.explain;
  for (const std::string& name : raw.disabled) {
    auto feature = usdt::feature_by_name(name);
    if (!feature) return usdt::fail(feature.error());
    flags.features.disabled.push_back(*feature);
  }
  return {};
}

usdt::Result<void> set_option(Flags& flags, usdt::QuestionText& text, std::string_view name, std::string_view value) {
  flags.dump_on_signal |= name == "dump-on" && value == "signal";
  // The signal ends the trace, as everything does that "exit" waits for.
  return text.set(name, name == "dump-on" && value == "signal" ? "exit" : value);
}

usdt::Result<usdt::QuestionText> asked_text(Flags& flags, const RawFlags& raw, const CommandLine& line) {
  usdt::QuestionText text(usdt::tools::kOptionPrefix);
  text.command = line.command;
  for (const auto& [name, value] : raw.question.written())
    if (auto set = set_option(flags, text, name, value); !set) return usdt::fail(set.error());
  for (const ExportPart& each : flags.output.exports)
    if (each.format == kRecordFormat)
      if (auto set = text.set("record", each.file); !set) return usdt::fail(set.error());
  return text;
}

usdt::Result<void> make_question(Flags& flags, const usdt::QuestionText& text) {
  if (auto points = check_points(text.points); !points) return points;
  const auto is_json = [](const ExportPart& part) { return part.format == kJsonFormat; };
  const bool json = is_json(flags.output.shown);
  // A script does not know how it will be shown.
  if (json && text.has("format-string") && flags.script.file.empty())
    return wrong("--format-string is of text: --format json has every value by itself");
  auto question = usdt::parse_question(text);
  if (!question) return usdt::fail(question.error());
  question->name = flags.question.name;
  flags.question = std::move(*question);
  usdt::AskedValues& values = flags.question.values;
  if (json) values.format = {};
  if (!values.likely_texts && json && std::ranges::all_of(flags.output.exports, is_json))
    values.likely_texts = false;  // JSON has none unless they are asked for: none is looked for
  usdt::begin_question(flags.question, usdt::event_clock());  // from now on "elapsed" counts
  if (flags.question.points.debuginfod)
    if (auto named = usdt::tools::name_debug_servers(); !named) return named;
  if (auto goes = usdt::check_sink_format(flags.output.shown.format, flags.question); !goes) return goes;
  for (const ExportPart& each : flags.output.exports)
    if (auto goes = usdt::check_sink_format(each.format, flags.question); !goes) return goes;
  return {};
}

namespace {

CommandLine split(int argc, char** argv) {
  CommandLine line{.own = {argv + 1, argv + argc}, .command = {}};
  if (const auto dashes = std::find(line.own.begin(), line.own.end(), "--"); dashes != line.own.end()) {
    line.command.assign(dashes + 1, line.own.end());
    line.empty_command = line.command.empty();
    line.own.erase(dashes, line.own.end());
  }
  usdt::tools::complete_bare_options(line.own);
  return line;
}

/// "-f FILE.toml"
bool is_script_for_format(const std::vector<std::string>& words) {
  const auto option = std::ranges::find(words, "-f");
  return option != words.end() && option + 1 != words.end() && (option + 1)->ends_with(".toml");
}

/// Makes the question of a command line.
usdt::Result<void> interpret(const CLI::App& app, Flags& flags, const RawFlags& raw, const CommandLine& line) {
  if (auto own = interpret_own(app, flags, raw); !own) return own;
  auto text = asked_text(flags, raw, line);
  if (!text) return usdt::fail(text.error());
  text->points = raw.probes;
  return make_question(flags, *text);
}

/// Returns the exit code: whether this user may trace.
int print_own_rights() {
  const std::vector<usdt::Right> rights = usdt::list_rights();
  usdt::io::Stream out(STDOUT_FILENO);
  const bool may_trace = usdt::tools::print_rights(rights, usdt::find_bpf_token(), out);
  const bool is_written = out.flush() == usdt::io::Stream::Flushed::all;
  return is_written && may_trace ? 0 : kRunTimeFailure;
}

}  // namespace

std::optional<std::vector<Flags>> parse_flags(int argc, char** argv, int& exit_code) {
  const auto complain = [&](std::string_view why, bool about_presets = false) {
    usdt::tools::print_notice("usdt-trace",
                              fmt::format("{}; see {}", why, about_presets ? "usdt-list --presets" : "--help"));
    exit_code = kUsageError;
    return std::nullopt;
  };
  CommandLine line = split(argc, argv);
  Flags flags;
  RawFlags raw;
  CLI::App app;
  declare(app, flags, raw);
  if (is_script_for_format(line.own)) return complain("-f is --format, text or json; a script is --script FILE");
  if (std::ranges::find(line.own, "--presets") != line.own.end())
    return complain("--preset NAME asks one; usdt-list has a list of them", true);
  if (const auto end = usdt::tools::parse_command_line(app, line.own, kUsageError, &brief_help())) {
    exit_code = *end;
    return std::nullopt;
  }
  if (raw.doctor) {
    exit_code = print_own_rights();
    return std::nullopt;
  }
  if (line.empty_command) return complain("no command behind --: it would trace every process");
  if (!flags.script.file.empty() && !flags.script.preset.empty()) return complain("--script and --preset: one of them");
  if (!flags.script.file.empty() || !flags.script.preset.empty()) {
    auto questions = questions_of_script(app, flags, line);
    if (!questions) return complain(questions.error().message, !flags.script.preset.empty());
    return std::move(*questions);
  }
  if (auto sense = interpret(app, flags, raw, line); !sense) return complain(sense.error().message);
  return std::vector{std::move(flags)};
}

}  // namespace usdt_trace
