// SPDX-License-Identifier: BSD-2-Clause
// A script's keys are options of the command line, and mean what they mean there.
#include "script_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <span>
#include <utility>

#include "common/nearest.hpp"
#include "common/presets.hpp"
#include "common/script.hpp"
#include "io/width.hpp"
#include "settle_questions.hpp"
#include "usdt/sink.hpp"
#include "wrong_usage.hpp"

namespace usdt_trace {
namespace {

using usdt::tools::Script;
using usdt::tools::ScriptOption;
using usdt::tools::ScriptPlace;
using usdt::tools::ScriptQuestion;

/// Options of the tool that are of the whole run of a script: at its top, or on the command line.
constexpr std::array<std::string_view, 11> kOfRun = {"format",  "output",  "export", "listen",
                                                     "quiet",   "verbose", "strict", "disable-feature",
                                                     "explain", "script",  "preset"};
/// Options of one question that the command line may have beside a script, if no more than one is asked: how much of
/// its answer there shall be, and where its events are kept.
constexpr std::array<std::string_view, 10> kOfAskedQuestion = {"max-events", "max-rate",   "max-overhead", "sample",
                                                               "record",     "top",        "interval",     "max-rows",
                                                               "key-size",   "string-size"};
/// Options that scripts do not have.
constexpr std::array<std::string_view, 9> kOfCommandLine = {"replay",  "explain",    "script", "preset",      "help",
                                                            "version", "completion", "manual", "verifier-log"};

template <std::size_t N>
bool is_in(const std::array<std::string_view, N>& all, std::string_view name) {
  return std::ranges::find(all, name) != all.end();
}

bool has_scope(std::string_view name, usdt::OptionScope scope) {
  const usdt::QuestionOption* const option = usdt::find_question_option(name);
  return option != nullptr && option->scope == scope;
}

bool is_of_run(std::string_view name) { return is_in(kOfRun, name) || has_scope(name, usdt::OptionScope::session); }

bool is_own(std::string_view name) { return usdt::find_question_option(name) == nullptr; }

bool goes_with_replay(std::string_view name) {
  return is_own(name) ? own_option_goes_with_replay(name) : usdt::find_question_option(name)->of_replay;
}

/// Returns those of kOfAskedQuestion that the command line has.
std::vector<std::string> given_of_asked_question(const CLI::App& app) {
  std::vector<std::string> given;
  for (const std::string_view name : kOfAskedQuestion)
    if (app.get_option(fmt::format("--{}", name))->count() > 0) given.emplace_back(name);
  return given;
}

/// Returns a question without some of its options.
usdt::Result<usdt::QuestionText> without(const usdt::QuestionText& text, const std::vector<std::string>& names) {
  usdt::QuestionText left(text.option_prefix());
  left.points = text.points;
  left.command = text.command;
  for (const usdt::QuestionOption& option : usdt::question_options()) {
    if (!text.has(option.name) || std::ranges::find(names, option.name) != names.end()) continue;
    if (option.kind == usdt::OptionKind::flag)
      if (auto set = left.set(option.name); !set) return usdt::fail(set.error());
    for (const std::string& value : text.values(option.name))
      if (auto set = left.set(option.name, value); !set) return usdt::fail(set.error());
  }
  return left;
}

/// The part of a script that a key is in.
enum class Table { top, question };

usdt::Result<void> check_option(const CLI::App& app, const Script& script, const ScriptOption& option, Table table) {
  const CLI::Option* known = app.get_option_no_throw("--" + option.name);
  const auto wrong = [&](std::string_view why) { return usdt::fail(script.wrong(option.place, why)); };
  if (known == nullptr) {
    std::vector<std::string> names =
        table == Table::top
            ? std::vector<std::string>{"title", "needs", "programs", "tried", "known-as", "arguments", "question"}
            : std::vector<std::string>{"probes",        "title",     "cost",    "on-request",
                                       "fires-only-if", "otherwise", "known-as"};
    for (const CLI::Option* each : app.get_options())
      names.insert(names.end(), each->get_lnames().begin(), each->get_lnames().end());
    const std::string near = usdt::tools::nearest(option.name, names);
    return wrong(fmt::format("there is no '{}'{}", option.name, near.empty() ? "" : fmt::format(": '{}'?", near)));
  }
  if (is_in(kOfCommandLine, option.name))
    return wrong(fmt::format("{} is of the command line, not of scripts", option.name));
  if (table == Table::top && has_scope(option.name, usdt::OptionScope::question))
    return wrong(fmt::format("{} is of one question: it goes below a [question.NAME]", option.name));
  if (table == Table::question && is_of_run(option.name))
    return wrong(fmt::format("{} is of all questions: it goes above the first [question.NAME]", option.name));
  const bool is_flag = known->get_expected_max() == 0;
  const bool may_be_bare = !is_own(option.name) && !usdt::find_question_option(option.name)->bare_value.empty();
  if (std::holds_alternative<bool>(option.value) != is_flag && !may_be_bare)
    return wrong(is_flag ? fmt::format("{} is true or false", option.name)
                         : fmt::format("{} takes a {}", option.name, known->get_type_name()));
  return {};
}

/// Returns the values of an option: none for a flag that is false, an empty one for a flag that is true.
std::vector<std::string> values_of(const ScriptOption& option) {
  if (const bool* flag = std::get_if<bool>(&option.value)) return std::vector<std::string>(*flag ? 1 : 0);
  return std::get<std::vector<std::string>>(option.value);
}

/// Returns the place in the script of the option that a message is about.
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

/// A script, and the command line that it is run by.
class ScriptRun {
 public:
  ScriptRun(const Script& script, const CLI::App& given, const CommandLine& line, const OptionValues& usual)
      : script_(script), given_(given), line_(line), usual_(usual) {}

  /// Takes the options of the tool: what the script says of all questions, and above that the command line.
  usdt::Result<void> begin() {
    std::vector<std::string> words = line_.own;
    for (const ScriptOption& option : script_.shared) {
      if (!is_own(option.name) || is_given(option.name) || !is_taken(option.name)) continue;
      for (const std::string& value : values_of(option))
        words.push_back(fmt::format("--{}{}{}", option.name, value.empty() ? "" : "=", value));
    }
    RawFlags raw;
    CLI::App app("", "usdt-trace");
    declare(app, flags_, raw);
    if (auto complaint = usdt::tools::complaint_of(app, std::move(words))) return wrong(*complaint, kNoQuestion);
    if (auto own = interpret_own(app, flags_, raw); !own) return wrong(own.error().message, kNoQuestion);
    auto text = asked_text(flags_, raw, line_);
    if (!text) return usdt::fail(text.error());
    text_ = std::move(*text);
    auto others = without(text_, given_of_asked_question(given_));
    if (!others) return usdt::fail(others.error());
    text_of_others_ = std::move(*others);
    return {};
  }

  /// Makes one question: what it says itself, what the script says of all, and above that the command line. One that is
  /// not `asked`, and may stand for one that is, does not have what the command line says of that.
  usdt::Result<Flags> question(const ScriptQuestion& question, bool asked) const {
    Flags flags = flags_;
    usdt::QuestionText text = asked ? text_ : text_of_others_;
    text.points = question.probes;
    flags.question.name = question.name;
    flags.script.file = script_.file;
    flags.script.place = script_.name_place(question.place, question.name);
    for (const ScriptOption& option : script_.shared) {
      if (is_own(option.name) || is_given(option.name) || question.has(option.name)) continue;
      if (auto set = set_option_of(question, option, flags, text); !set) return usdt::fail(set.error());
    }
    for (const ScriptOption& option : question.options) {
      if (asked && is_given(option.name)) continue;
      if (auto set = set_option_of(question, option, flags, text); !set) return usdt::fail(set.error());
    }
    for (const auto& [name, value] : usual_)
      if (!text.has(name))
        if (auto set = text.set(name, value); !set) return usdt::fail(set.error());
    if (auto made = make_question(flags, text); !made) return wrong(made.error().message, question);
    for (auto* patterns : {&flags.question.points.patterns, &flags.question.points.ends})
      for (usdt::PointPattern& pattern : *patterns)
        if (auto* probe = std::get_if<usdt::ProbePattern>(&pattern)) probe->declarations = script_.declarations;
    return flags;
  }

 private:
  [[nodiscard]] bool is_given(const std::string& name) const { return given_.get_option("--" + name)->count() > 0; }
  [[nodiscard]] bool is_taken(std::string_view name) const {
    return given_.get_option("--replay")->count() == 0 || goes_with_replay(name);
  }

  usdt::Result<void> set_option_of(const ScriptQuestion& question, const ScriptOption& option, Flags& flags,
                                   usdt::QuestionText& text) const {
    if (!is_taken(option.name)) return {};
    for (const std::string& value : values_of(option))
      if (auto set = set_option(flags, text, option.name, value); !set)
        return usdt::fail(script_.wrong(option.place, set.error().message, question.name));
    return {};
  }

  /// Fails with a message, and the place of the option that it is about.
  [[nodiscard]] tl::unexpected<usdt::Error> wrong(std::string_view why, const ScriptQuestion& question) const {
    return usdt::fail(script_.wrong(place_of(why, question, script_), why, question.name));
  }

  /// Stands for the top of the script, about which options of all questions are.
  inline static const ScriptQuestion kNoQuestion{.name = {}, .place = {1, 1}};

  const Script& script_;
  const CLI::App& given_;
  const CommandLine& line_;
  const OptionValues& usual_;
  Flags flags_ = {};
  usdt::QuestionText text_ = {};
  usdt::QuestionText text_of_others_ = {};  ///< without what is of the question that is asked
};

/// As questions_of_script(). `asked`: the names of those that are not only there to stand for others.
usdt::Result<std::vector<Flags>> make_questions(const Script& script, const std::vector<std::string>& asked,
                                                const CLI::App& app, const Flags& flags, const CommandLine& line,
                                                const OptionValues& usual) {
  for (const ScriptOption& option : script.shared)
    if (auto sense = check_option(app, script, option, Table::top); !sense) return usdt::fail(sense.error());
  for (const ScriptQuestion& question : script.questions)
    for (const ScriptOption& option : question.options)
      if (auto sense = check_option(app, script, option, Table::question); !sense) return usdt::fail(sense.error());
  const usdt::FeatureChoice features{.disabled = {}, .assumes_release = flags.explain};
  const usdt::FeatureScope scope(features);
  if (auto there = usdt::tools::check_needs(script); !there) return usdt::fail(there.error());
  ScriptRun run(script, app, line, usual);
  if (auto begun = run.begin(); !begun) return usdt::fail(begun.error());
  std::vector<Flags> questions;
  std::size_t width = 0;
  for (const ScriptQuestion& question : script.questions) {
    auto made = run.question(question, std::ranges::find(asked, question.name) != asked.end());
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
      return usdt::fail(script.wrong(script.questions[n].place,
                                     fmt::format("another question records to {}, too", each.question.recording.file),
                                     each.question.name));
  }
  return questions;
}

/// What the processes of -p have mapped, and the command will have.
std::vector<usdt::TargetFile> files_asked_about(const CLI::App& app, const CommandLine& line) {
  std::vector<usdt::TargetFile> files;
  const auto add = [&](usdt::Result<std::vector<usdt::TargetFile>> found) {
    if (found) std::ranges::move(*found, std::back_inserter(files));
  };
  const CLI::Option* const pids = app.get_option("--pid");
  if (pids->count() > 0)
    for (const pid_t pid : pids->as<std::vector<pid_t>>()) add(usdt::files_of_process(pid));
  if (!line.command.empty())
    if (const auto program = usdt::find_program(line.command.front())) add(usdt::files_of_program(*program));
  return files;
}

std::vector<std::string> names_of(const Script& script) {
  std::vector<std::string> names;
  for (const ScriptQuestion& question : script.questions) names.push_back(question.name);
  return names;
}

/// What of a preset is asked; of a script each question.
usdt::Result<usdt::tools::ChosenPreset> find_script(const ScriptPart& named, const CLI::App& app,
                                                    const CommandLine& line) {
  if (!named.preset.empty())
    return usdt::tools::choose_preset(named.preset, [&] { return files_asked_about(app, line); });
  auto script = usdt::tools::read_script(named.file);
  if (!script) return usdt::fail(script.error());
  usdt::tools::ChosenPreset all;
  all.preset.script = std::move(*script);
  all.questions = names_of(all.preset.script);
  return all;
}

/// Refuses processes of -p in which no function of a preset is, since none runs what it is about. Probes may be in any
/// program, and who looks for them says where there are none.
usdt::Result<void> check_processes(const usdt::tools::Preset& preset, const std::vector<Flags>& made) {
  const usdt::AskedProcesses& asked = made.front().question.processes;
  const auto is_of_functions = [](const Flags& each) {
    return std::ranges::all_of(each.question.points.patterns, [](const usdt::PointPattern& pattern) {
      return std::holds_alternative<usdt::FunctionPattern>(pattern);
    });
  };
  if (preset.script.programs.empty() || asked.pids.empty() || asked.children || !asked.command.empty()) return {};
  if (!made.front().question.recording.replay.empty() || !std::ranges::all_of(made, is_of_functions)) return {};
  for (const pid_t pid : asked.pids) {
    const auto files = usdt::files_of_process(pid);
    if (!files || usdt::tools::is_about(preset, *files)) return {};  // where it ended that is said later
  }
  return usdt::fail(
      usdt::ErrorKind::not_found,
      fmt::format("{} {} {} nothing that preset '{}' is about: {}", asked.pids.size() == 1 ? "process" : "processes",
                  fmt::join(asked.pids, ", "), asked.pids.size() == 1 ? "runs" : "run", preset.name,
                  fmt::join(preset.script.programs, ", ")));
}

/// Refuses what is of one question where several are asked.
tl::unexpected<usdt::Error> is_of_one_question(std::string_view what, const Script& script,
                                               const std::vector<std::string>& asked) {
  const bool is_preset = !script.preset.empty();
  return usdt::fail(usdt::ErrorKind::invalid_argument,
                    fmt::format("{} is of one question, and {} asks {}: {}; {}", what,
                                is_preset ? fmt::format("preset '{}'", script.preset) : script.file, asked.size(),
                                fmt::join(asked, ", "),
                                is_preset ? fmt::format("name one: --preset {}.{}", script.preset, asked[0])
                                          : "a script of one question has it"));
}

/// Options of the command line are not meant for several questions.
usdt::Result<void> check_given(const Script& script, const std::vector<std::string>& asked, const CLI::App& app) {
  const std::vector<std::string> given = given_of_asked_question(app);
  if (given.empty() || asked.size() < 2) return {};
  return is_of_one_question("--" + given.front(), script, asked);
}

/// Some forms have the columns, or the stacks, of one question: of several they are for one alone.
usdt::Result<void> check_forms(const Script& script, const std::vector<std::string>& asked, const OutputPart& output) {
  if (asked.size() < 2) return {};
  const auto check = [&](std::string_view option, const std::string& name) -> usdt::Result<void> {
    const auto formats = usdt::sink_formats();
    const auto form = std::ranges::find(formats, name, &usdt::SinkFormat::name);
    if (form == formats.end() || !form->of_one_question) return {};
    return is_of_one_question(fmt::format("{} {}", option, name), script, asked);
  };
  if (auto fits = check("--format", output.shown.format); !fits) return fits;
  for (const ExportPart& each : output.exports)
    if (auto fits = check("--export", each.format); !fits) return fits;
  return {};
}

}  // namespace

usdt::Result<std::vector<Flags>> questions_of_script(const CLI::App& app, const Flags& flags, const CommandLine& line) {
  const bool is_preset = !flags.script.preset.empty();
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_single_name();
    if (option->count() > 0 && !is_of_run(name) && !is_in(kOfAskedQuestion, name))
      return usdt::fail(usdt::ErrorKind::invalid_argument,
                        fmt::format("{} does not go with --{}, whose questions have theirs",
                                    name == "probe" ? "a probe" : "--" + name, is_preset ? "preset" : "script"));
  }
  auto chosen = find_script(flags.script, app, line);
  if (!chosen) return usdt::fail(chosen.error());
  Script& script = chosen->preset.script;
  leave_chosen(script, chosen->questions);
  if (auto fits = check_given(script, chosen->questions, app); !fits) return usdt::fail(fits.error());
  auto made = make_questions(script, chosen->questions, app, flags, line, {});
  if (!made) return usdt::fail(made.error());
  if (is_preset)
    if (auto there = check_processes(chosen->preset, *made); !there) return usdt::fail(there.error());
  if (auto fit = check_forms(script, chosen->questions, made->front().output); !fit) return usdt::fail(fit.error());
  return settle_questions(script, chosen->questions, given_of_asked_question(app), *made);
}

usdt::Result<std::vector<Flags>> parse_questions(const std::string& file, std::string_view text,
                                                 const OptionValues& usual, bool without_privilege) {
  auto script = usdt::tools::parse_script(file, text);
  if (!script) return usdt::fail(script.error());
  Flags flags;
  RawFlags raw;
  CLI::App app;
  declare(app, flags, raw);
  CommandLine line{.own = {"--script", file}, .command = {}};
  if (without_privilege) line.own.emplace_back("--explain");
  if (const auto complaint = usdt::tools::complaint_of(app, line.own)) return wrong(*complaint);
  return make_questions(*script, names_of(*script), app, flags, line, usual);
}

}  // namespace usdt_trace
