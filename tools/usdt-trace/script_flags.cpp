// SPDX-License-Identifier: BSD-2-Clause
// A script's keys are options of the command line, and mean what they mean there.
#include "script_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <utility>

#include "common/nearest.hpp"
#include "io/width.hpp"
#include "script.hpp"

namespace usdt_trace {
namespace {

/// Of the whole run of a script: at its top, or on the command line.
constexpr std::array<std::string_view, 20> kOfRun = {
    "pid",          "children", "cgroup",          "container",      "duration",          "format",
    "output",       "quiet",    "verbose",         "strict",         "no-follow",         "hold-exec",
    "max-followed", "wait",     "disable-feature", "wait-for-pages", "no-wait-for-pages", "replay",
    "explain",      "script"};
/// Of one question alone.
constexpr std::array<std::string_view, 25> kOfQuestion = {
    "where",      "pair-by", "print",       "format-string", "count",    "by",      "sum",      "avg",  "min",
    "max",        "hist",    "lhist",       "top",           "distinct", "heatmap", "record",   "rate", "latency",
    "max-events", "args",    "hist-detail", "slowest",       "last",     "dump-on", "in-flight"};
/// Of neither.
constexpr std::array<std::string_view, 8> kOfCommandLine = {"replay",  "explain",    "script", "help",
                                                            "version", "completion", "manual", "verifier-log"};

template <std::size_t N>
bool is_in(const std::array<std::string_view, N>& all, std::string_view name) {
  return std::ranges::find(all, name) != all.end();
}

/// Where in a script something belongs.
enum class Table { top, question };

usdt::Result<void> check_option(const CLI::App& app, const Script& script, const ScriptOption& option, Table table) {
  const CLI::Option* known = app.get_option_no_throw("--" + option.name);
  const auto wrong = [&](std::string_view why) { return usdt::fail(script.wrong(option.place, why)); };
  if (known == nullptr) {
    std::vector<std::string> names = table == Table::top ? std::vector<std::string>{"title", "needs", "question"}
                                                         : std::vector<std::string>{"probes"};
    for (const CLI::Option* each : app.get_options())
      names.insert(names.end(), each->get_lnames().begin(), each->get_lnames().end());
    const std::string near = usdt::tools::nearest(option.name, names);
    return wrong(fmt::format("there is no '{}'{}", option.name, near.empty() ? "" : fmt::format(": '{}'?", near)));
  }
  if (is_in(kOfCommandLine, option.name))
    return wrong(fmt::format("{} is of the command line, not of scripts", option.name));
  if (table == Table::top && is_in(kOfQuestion, option.name))
    return wrong(fmt::format("{} is of one question: it goes below a [question.NAME]", option.name));
  if (table == Table::question && is_in(kOfRun, option.name))
    return wrong(fmt::format("{} is of all questions: it goes above the first [question.NAME]", option.name));
  const bool is_flag = known->get_expected_max() == 0;
  const bool stack =
      option.name == "kstack" || option.name == "ustack" || option.name == "in-flight";  // their values may be left out
  if (std::holds_alternative<bool>(option.value) != is_flag && !stack)
    return wrong(is_flag ? fmt::format("{} is true or false", option.name)
                         : fmt::format("{} takes a {}", option.name, known->get_type_name()));
  return {};
}

/// As words of the command line.
void add_words(const ScriptOption& option, std::vector<std::string>& words) {
  if (const bool* flag = std::get_if<bool>(&option.value)) {
    if (*flag) words.push_back("--" + option.name);
    return;
  }
  for (const std::string& value : std::get<std::vector<std::string>>(option.value))
    words.push_back(fmt::format("--{}={}", option.name, value));
}

/// Where in the script the option is that a message is about.
ScriptPlace place_of(std::string_view message, const ScriptQuestion& question, const Script& script) {
  ScriptPlace place = question.place;
  std::size_t first = message.npos;
  for (const auto* options : {&question.options, &script.shared}) {
    for (const ScriptOption& option : *options) {
      const std::size_t at = message.find("--" + option.name);
      const std::size_t behind = at + 2 + option.name.size();
      if (at >= first || (behind < message.size() && (std::isalnum(message[behind]) || message[behind] == '-')))
        continue;
      first = at;
      place = option.place;
    }
  }
  return place;
}

/// One question of a script, as a command line of its own.
usdt::Result<Flags> question_flags(const Script& script, const ScriptQuestion& question, const CLI::App& given,
                                   const CommandLine& line) {
  std::vector<std::string> words = line.own;
  const bool replays = given.get_option("--replay")->count() > 0;
  const auto add = [&](const ScriptOption& option) {
    if (!replays || goes_with_replay(option.name)) add_words(option, words);
  };
  for (const ScriptOption& option : script.shared) {
    const bool own = std::ranges::find(question.options, option.name, &ScriptOption::name) != question.options.end();
    if (!own && given.get_option("--" + option.name)->count() == 0) add(option);
  }
  for (const ScriptOption& option : question.options) add(option);
  complete_stacks(words);
  Flags flags;
  RawFlags raw;
  flags.question.processes.command = line.command;
  CLI::App app("", "usdt-trace");
  declare(app, flags, raw);
  std::string why;
  if (auto complaint = usdt::tools::complaint_of(app, std::move(words))) {
    why = std::move(*complaint);
  } else {
    raw.probes = question.probes;
    if (auto sense = interpret(app, flags, raw); !sense) why = sense.error().message;
  }
  const ScriptPlace place = place_of(why, question, script);
  if (!why.empty()) return usdt::fail(script.wrong(place, fmt::format("{}: {}", question.name, why)));
  flags.question.name = question.name;
  flags.script.place =
      fmt::format("{}:{}:{}: {}", script.file, question.place.line, question.place.column, question.name);
  return flags;
}

}  // namespace

usdt::Result<std::vector<Flags>> questions_of_script(const CLI::App& app, const Flags& flags, const CommandLine& line) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_single_name();
    if (option->count() > 0 && !is_in(kOfRun, name))
      return usdt::fail(usdt::ErrorKind::invalid_argument,
                        fmt::format("{} does not go with --script, whose questions have theirs",
                                    name == "probe" ? "a probe" : "--" + name));
  }
  auto script = read_script(flags.script.file);
  if (!script) return usdt::fail(script.error());
  for (const ScriptOption& option : script->shared)
    if (auto sense = check_option(app, *script, option, Table::top); !sense) return usdt::fail(sense.error());
  for (const ScriptQuestion& question : script->questions)
    for (const ScriptOption& option : question.options)
      if (auto sense = check_option(app, *script, option, Table::question); !sense) return usdt::fail(sense.error());
  if (flags.explain) usdt::assume_features_of_release();
  if (auto there = check_needs(*script); !there) return usdt::fail(there.error());
  std::vector<Flags> questions;
  std::size_t width = 0;
  for (const ScriptQuestion& question : script->questions) {
    auto made = question_flags(*script, question, app, line);
    if (!made) return usdt::fail(made.error());
    width = std::max(width, usdt::io::shown_width(question.name));
    questions.push_back(std::move(*made));
  }
  for (std::size_t n = 0; n < questions.size(); ++n) {
    Flags& each = questions[n];
    each.script.label_width = width;
    const auto others = std::span(questions).first(n);
    if (!each.question.recording.file.empty() &&
        std::ranges::find(others, each.question.recording.file,
                          [](const Flags& other) { return other.question.recording.file; }) != others.end())
      return usdt::fail(script->wrong(
          script->questions[n].place,
          fmt::format("{}: another question records to {}, too", each.question.name, each.question.recording.file)));
  }
  return questions;
}

}  // namespace usdt_trace
